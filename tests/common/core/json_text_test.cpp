#include "common/core/json_text.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

TEST(JsonText, VisitsMembersWithTheirTextAsWritten) {
  std::vector<std::string> seen;
  for_each_member(R"( { "a" : 1.50 , "b":{"x":[1,"}"]} ,"c":"q\"," , "d":null } )",
                  [&](std::string_view key, std::string_view value) {
                    seen.push_back(std::string(key) + "=" + std::string(value));
                    return true;
                  });
  EXPECT_EQ(seen,
            (std::vector<std::string>{"a=1.50", R"(b={"x":[1,"}"]})", R"(c="q\",")", "d=null"}));
}

TEST(JsonText, ReplacesOneMemberAndLeavesTheRestAsItWas) {
  const auto edited =
      edit_member(R"({"a": 1, "b" :{"c":2} ,"d":3})", "b",
                  [](std::string_view old) { return "[" + std::string(old) + "]"; });
  EXPECT_EQ(edited, R"({"a": 1, "b" :[{"c":2}] ,"d":3})");
}

TEST(JsonText, AddsAMissingMember) {
  const auto one = [](std::string_view old) {
    EXPECT_TRUE(old.empty());
    return std::string("1");
  };
  EXPECT_EQ(edit_member("{}", "a", one), R"({"a":1})");
  EXPECT_EQ(edit_member(R"({ "b":2})", "a", one), R"({"a":1, "b":2})");
  EXPECT_EQ(edit_member(R"({"b":{"a":2}})", "a", one), R"({"a":1,"b":{"a":2}})");
}

TEST(JsonText, LeavesAnObjectWithoutTheMemberAlone) {
  const auto one = [](std::string_view) { return std::string("1"); };
  EXPECT_EQ(edit_present_member(R"({"b":{"a":2}})", "a", one), R"({"b":{"a":2}})");
  EXPECT_EQ(edit_present_member(R"({"b":{"a":2}})", "b", one), R"({"b":1})");
}

TEST(JsonText, ReadsOneMember) {
  const std::string_view object = R"({"a":{"b":1},"quoted":"x \"y\" \u00e4","none":null,"n":7})";
  EXPECT_EQ(member_text(object, "a"), R"({"b":1})");
  EXPECT_EQ(member_text(object, "none"), "");
  EXPECT_EQ(member_text(object, "b"), "");
  EXPECT_EQ(member_text("[1]", "a"), "");
  EXPECT_EQ(member_string(object, "quoted"), "x \"y\" ä");
  EXPECT_EQ(member_string(object, "n"), "");
  EXPECT_EQ(member_string(object, "absent"), "");
}

TEST(JsonText, WritesMembersInTheOrderOfTheCalls) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("z", "a\"b");
  ObjectWriter inner(writer.begin("inner"));
  inner.end();
  writer.raw("a", "[1]");
  writer.end();
  EXPECT_EQ(out, R"({"z":"a\"b","inner":{},"a":[1]})");
}

TEST(JsonText, SetsStringsInAnObjectThatMayBeMissing) {
  EXPECT_EQ(with_strings("", {{"k", "v<\"x"}}), R"({"k":"v\u003c\"x"})");
  EXPECT_EQ(with_strings("null", {{"k", "v"}}), R"({"k":"v"})");
  EXPECT_EQ(with_strings(R"({"k":"old","z":""})", {{"k", "new"}}), R"({"k":"new","z":""})");
}

TEST(JsonText, VisitsTheItemsOfAnArray) {
  const auto items = [](std::string_view array) {
    std::vector<std::string> out;
    for_each_item(array, [&out](std::string_view item) { out.emplace_back(item); });
    return out;
  };
  EXPECT_EQ(items(R"( [ {"a":"],"} ,[1, 2],"x\"," ,3 ] )"),
            (std::vector<std::string>{R"({"a":"],"})", "[1, 2]", R"("x\",")", "3"}));
  EXPECT_TRUE(items("[]").empty());
  EXPECT_TRUE(items("null").empty());
}

TEST(JsonText, AC25_GarbageIsNotReadBeyondItsEnd) {
  for (const std::string text : {"",        "{",           "{\"",  "{\"a",      "{\"a\"",
                                 "{\"a\":", "{\"a\":\"\\", "[1]",  "{\"a\":1,", "{\"a\":{\"b\":[",
                                 "}",       "{]}",         "null", "{\"a\"}",   "[",
                                 "[1",      "[1,",         "[,",   "[\"",       "[}",
                                 "[[",      "[1 2"}) {
    for_each_member(text, [](std::string_view, std::string_view) { return true; });
    for_each_item(text, [](std::string_view) {});
    edit_member(text, "x", [](std::string_view) { return std::string("1"); });
  }
}

TEST(JsonText, AbsentPlacesReadAsNothing) {
  JsonParser parser;
  const JsonView root = parser.parse(R"({"a":{"b":"x","n":7,"z":null}})", "the text").value();
  EXPECT_EQ(root["a"]["b"].text(), "x");
  EXPECT_EQ(root["a"]["n"].number(), 7);
  EXPECT_FALSE(root["a"]["z"].exists());
  EXPECT_EQ(root["no"]["such"]["place"].text(), "");
  EXPECT_EQ(root["a"]["b"].items().size(), 0U);
  EXPECT_EQ(root["a"]["b"].members().size(), 0U);
  for (const auto place : {JsonView(), root["no"], root["a"]["z"]}) {
    EXPECT_FALSE(place.is_text() || place.is_integer() || place.is_true());
    EXPECT_FALSE(place.is_array() || place.is_object());
    EXPECT_EQ(place.number(), 0);
    EXPECT_EQ(place.to_text(), "");
    EXPECT_FALSE(place["key"].exists());
    for (const auto item : place.items()) ADD_FAILURE() << item.to_text();
    for (const auto& [key, value] : place.members()) ADD_FAILURE() << key << value.to_text();
  }
}

static_assert(std::forward_iterator<JsonItems::Iterator>);
static_assert(std::forward_iterator<JsonMembers::Iterator>);
static_assert(std::ranges::forward_range<JsonItems> && std::ranges::forward_range<JsonMembers>);

TEST(JsonText, ItemsAreVisitedInOrderWithThoseThatHoldOthers) {
  JsonParser parser;
  const auto root =
      parser.parse(R"([1,-2.5,18446744073709551615,"t",true,null,[],[1,[2]],{},{"k":[3]}])", "it");
  ASSERT_TRUE(root);
  std::vector<std::string> seen;
  for (const auto item : root->items()) seen.push_back(item.to_text());
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "-2.5", "18446744073709551615", "\"t\"", "true",
                                            "", "[]", "[1,[2]]", "{}", R"({"k":[3]})"}));
  EXPECT_EQ(root->items().size(), 10U);
  EXPECT_EQ(std::ranges::distance(root->items().begin(), root->items().end()), 10);
  auto at = root->items().begin();
  EXPECT_EQ((*at++).number(), 1);
  EXPECT_EQ((*at).to_text(), "-2.5");
}

TEST(JsonText, MembersAreVisitedInOrderWithKeysThatAreRepeatedOrEscaped) {
  JsonParser parser;
  const auto root = parser.parse_object(R"({"z":{"n":1},"a\"b":[1],"z":null,"":"last"})", "it");
  ASSERT_TRUE(root);
  std::vector<std::pair<std::string, std::string>> seen;
  for (const auto& [key, value] : root->members()) seen.emplace_back(key, value.to_text());
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, std::string>>{
                      {"z", R"({"n":1})"}, {"a\"b", "[1]"}, {"z", ""}, {"", R"("last")"}}));
  EXPECT_EQ(root->members().size(), 4U);
  EXPECT_EQ((*root)["z"]["n"].number(), 1);  // the first of that name
  EXPECT_TRUE(std::ranges::none_of(root->members(),
                                   [](const JsonMember& each) { return each.key == "n"; }));
}

TEST(JsonText, TellsTheKindsOfValuesApart) {
  JsonParser parser;
  const auto root = parser.parse_object(
      R"({"t":"","i":-7,"big":18446744073709551615,"d":7.0,"b":true,"l":[],"o":{}})", "it");
  ASSERT_TRUE(root);
  const auto kinds = [&](std::string_view key) {
    const JsonView at = (*root)[key];
    return std::string(at.is_text() ? "t" : "") + (at.is_integer() ? "i" : "") +
           (at.is_true() ? "b" : "") + (at.is_array() ? "l" : "") + (at.is_object() ? "o" : "");
  };
  for (const auto* key : {"t", "i", "b", "l", "o"}) EXPECT_EQ(kinds(key), key);
  EXPECT_EQ(kinds("big"), "");
  EXPECT_EQ(kinds("d"), "");
  EXPECT_EQ((*root)["i"].number(), -7);
}

// An API server returns 32000000000000000000 as it is, and rounds 18446744073709551615 to a number
// that has more than 64 bits, too.
TEST(JsonText, NumbersOfAnySizeAreKeptAsTheirText) {
  const std::string text =
      R"({"before":"a \"quoted\" \\","n":32000000000000000000,)"
      R"("list":[18446744073709552000,-1e400,7,)"
      R"([-9223372036854775809]],"k":{"deep":123456789012345678901234567890.5e-3},"fits":-7,)"
      R"("digits":"99999999999999999999","after":"z"})";
  JsonParser parser;
  const auto root = parser.parse_object(text, "it");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->to_text(), text);
  EXPECT_EQ((*root)["before"].text(), R"(a "quoted" \)");
  EXPECT_EQ((*root)["after"].text(), "z");
  EXPECT_EQ((*root)["digits"].text(), "99999999999999999999");
  EXPECT_EQ((*root)["fits"].number(), -7);
  EXPECT_EQ((*root)["list"].items().size(), 4U);
  const auto large = (*root)["n"];
  EXPECT_TRUE(large.exists());
  EXPECT_FALSE(large.is_text() || large.is_integer() || large.is_object() || large.is_array());
  EXPECT_EQ(large.text(), "");
  EXPECT_EQ(large.number(), 0);
  EXPECT_EQ(large.to_text(), "32000000000000000000");
  // The next text begins over.
  EXPECT_EQ(parser.parse(R"(["x",1])", "it").value().to_text(), R"(["x",1])");
  EXPECT_EQ(parser.parse("99999999999999999999", "it").value().to_text(), "99999999999999999999");
}

TEST(JsonText, WhatIsNoNumberIsStillRefused) {
  JsonParser parser;
  for (const auto* text :
       {"[01]", "[1e]", "[99999999999999999999x]", "[-]", "[+99999999999999999999]", "[1.]",
        "[099999999999999999999]", "[99999999999999999999 1]", R"({"a":99999999999999999999,})",
        R"({99999999999999999999:1})", R"({"a":1e400,99999999999999999999 :1})",
        "[99999999999999999999"}) {
    const auto parsed = parser.parse(text, "it");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_data) << text;
  }
}

TEST(JsonText, TellsNumbersByTheGrammar) {
  for (const auto* text : {"0", "-0", "10", "1.50", "1e2", "-1E+2", "0.1e-10",
                           "99999999999999999999999999", "1e400"}) {
    EXPECT_TRUE(is_json_number(text)) << text;
  }
  for (const auto* text :
       {"", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1 ", "0x1", "NaN", "1.2.3"}) {
    EXPECT_FALSE(is_json_number(text)) << text;
  }
}

TEST(JsonText, AParserTakesOneTextAfterAnotherAndKeepsItsViewsWhenItMoves) {
  JsonParser parser;
  EXPECT_EQ(parser.parse("{", "the list").error().code, ErrorCode::invalid_data);
  EXPECT_EQ(parser.parse_object("[]", "the list").error().message,
            "the list is not usable JSON: not an object");
  EXPECT_EQ(parser.parse("[]", "it").value().to_text(), "[]");
  EXPECT_TRUE(parser.parse("null", "it"));
  EXPECT_FALSE(parser.parse("null", "it").value().exists());
  const auto root = parser.parse_object(R"({"a":["b"]})", "it");
  ASSERT_TRUE(root);
  const JsonParser moved = std::move(parser);
  EXPECT_EQ(root->to_text(), R"({"a":["b"]})");
}

TEST(JsonText, AC25_AParserWithALimitRefusesDeepTextsOfAnySize) {
  const auto nested = [](std::size_t depth, std::size_t width) {
    return std::string(depth, '[') + std::string(width, ' ') + std::string(depth, ']');
  };
  JsonParser parser(8);
  for (const std::size_t width : {0UL, 10UL, 10'000UL}) {
    EXPECT_TRUE(parser.parse(nested(7, width), "it")) << width;
    EXPECT_FALSE(parser.parse(nested(9, width), "it")) << width;
  }
  JsonParser without;
  EXPECT_TRUE(without.parse(nested(500, 0), "it"));
}

}  // namespace
}  // namespace gitops::reporter
