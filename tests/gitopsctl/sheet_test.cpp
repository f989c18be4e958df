#include "gitopsctl/sheet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

const WallTime kNow = parse_rfc3339("2026-03-04T12:00:00Z").value();

Sheet sheet() {
  return {.schema = "gitopsctl/things/v1",
          .columns = {text_column("NAME", {"metadata", "name"}), state_column("SYNC", {"sync"}),
                      age_column("AGE", {"created"}), text_column("WHERE", {"where"}, true)},
          .name = [](const Json& item) { return text_at(item, {"metadata", "name"}); }};
}

Json thing(const std::string& name) {
  return {{"metadata", {{"name", name}}},
          {"sync", "OUT_OF_SYNC"},
          {"created", "2026-03-04T09:00:00Z"},
          {"where", "here"}};
}

Look look(Form form) {
  return {.form = form, .now = kNow};
}

TEST(Sheet, ATableHasHeadersAndAgesLikeKubectl) {
  EXPECT_EQ(render_list(sheet(), {thing("shop"), Json::object()}, look(Form::table)),
            "NAME  SYNC       AGE\n"
            "shop  OutOfSync  3h\n"
            "-     Unknown    <unknown>\n");
  EXPECT_EQ(render_list(sheet(), {thing("shop")}, look(Form::wide)),
            "NAME  SYNC       AGE  WHERE\n"
            "shop  OutOfSync  3h   here\n");
  EXPECT_EQ(render_list(sheet(), {thing("a"), thing("b")}, look(Form::name)), "a\nb\n");
}

TEST(Sheet, LinesFitIntoTheTerminal) {
  auto narrow = look(Form::table);
  narrow.width = 40;
  for (const auto& line : table_lines(sheet(), {thing(std::string(300, 'x'))}, narrow)) {
    EXPECT_LE(line.size() - 1, 42U) << line << "two bytes of the ellipsis have no column";
  }
  EXPECT_THAT(render_list(sheet(), {thing(std::string(300, 'x'))}, narrow),
              HasSubstr("xx…  OutOfSync"));
}

TEST(Sheet, JsonAndYamlHaveWhatTheServerSent) {
  const auto list = Json::parse(render_list(sheet(), {thing("shop")}, look(Form::json)));
  EXPECT_EQ(list["schema"], "gitopsctl/things/v1");
  EXPECT_EQ(list["items"], Json::array({thing("shop")}));
  EXPECT_EQ(
      render_item(sheet(), thing("shop"), look(Form::yaml)),
      "created: \"2026-03-04T09:00:00Z\"\nmetadata:\n  name: shop\nschema: gitopsctl/things/v1\n"
      "sync: OUT_OF_SYNC\nwhere: here\n");
}

// Names and messages come from clusters, and whoever may write there must not write to terminals.
TEST(Sheet, NoFormHasControlCharacters) {
  const std::string hostile =
      "a\x1b]0;title\x07"
      "b\x7f\xC2\x9B"
      "31m\r\nc";
  for (const auto form : {Form::table, Form::wide, Form::json, Form::yaml, Form::name}) {
    const auto text = render_list(sheet(), {thing(hostile)}, look(form)) +
                      render_item(sheet(), thing(hostile), look(form));
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      ASSERT_TRUE(c == '\n' || (byte >= 0x20 && byte != 0x7F)) << int{byte} << " in " << text;
    }
    EXPECT_THAT(text, Not(HasSubstr("\xC2\x9B")));
  }
  const auto json = Json::parse(render_list(sheet(), {thing(hostile)}, look(Form::json)));
  EXPECT_EQ(json["items"][0]["metadata"]["name"], hostile) << "programs get what there is";
}

TEST(Sheet, AgesAreKubectls) {
  const auto since = [](std::int64_t seconds) {
    return age(format_rfc3339(kNow - std::chrono::seconds(seconds)), kNow);
  };
  EXPECT_EQ(since(0), "0s");
  EXPECT_EQ(since(119), "119s");
  EXPECT_EQ(since(120), "2m");
  EXPECT_EQ(since(330), "5m30s");
  EXPECT_EQ(since(600), "10m");
  EXPECT_EQ(since(3 * 3600 - 1), "179m");
  EXPECT_EQ(since(3 * 3600 + 600), "3h10m");
  EXPECT_EQ(since(8 * 3600), "8h");
  EXPECT_EQ(since(47 * 3600), "47h");
  EXPECT_EQ(since(50 * 3600), "2d2h");
  EXPECT_EQ(since(9 * 86'400), "9d");
  EXPECT_EQ(since(800 * 86'400), "2y70d");
  EXPECT_EQ(since(3650 * 86'400), "10y");
  EXPECT_EQ(since(-5), "0s");
  EXPECT_EQ(age("", kNow), "<unknown>");
}

TEST(Sheet, StatesAreWordsWithColours) {
  EXPECT_EQ(state_cell("OUT_OF_SYNC").text, "OutOfSync");
  EXPECT_EQ(state_cell("HEALTHY").tone, cli::Tone::good);
  EXPECT_EQ(state_cell("Succeeded").text, "Succeeded");
  EXPECT_EQ(state_cell("Succeeded").tone, cli::Tone::good);
  EXPECT_EQ(state_cell("").text, "Unknown");
}

}  // namespace
}  // namespace gitops::ctl
