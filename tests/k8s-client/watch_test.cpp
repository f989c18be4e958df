#include "k8s-client/watch.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/sample_application.hpp"

namespace gitops::k8s {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Type = WatchEvent::Type;

std::string line(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}
std::string config_map(const std::string& name, const std::string& version,
                       const std::string& more = "") {
  return R"({"kind":"ConfigMap","metadata":{"name":")" + name +
         R"(","namespace":"shop","resourceVersion":")" + version + "\"}" + more + "}";
}

// An event as text, so that sequences can be compared.
std::string show(const WatchEvent& event) {
  std::string text(to_string(event.type));
  switch (event.type) {
    case Type::added:
    case Type::modified:
    case Type::deleted:
      text +=
          " " + event.record.key().to_string() + "@" + std::string(event.record.resource_version());
      break;
    case Type::error:
      text += " " + std::string(gitops::to_string(event.error.code)) + ": " + event.error.message;
      break;
    case Type::quarantined:
      text += " " + event.quarantined.key.to_string() + ": " + event.quarantined.reason + " " +
              std::to_string(event.quarantined.bytes) +
              (event.quarantined_deletion ? " (deletion)" : "");
      break;
    default:
      break;
  }
  if (!event.resource_version.empty()) text += " rv " + event.resource_version;
  return text;
}

struct WatchDecoding : testing::Test {
  ObjectDecoder objects{FieldSet({"data.a"}),
                        [](std::string_view, std::string_view name) { return name != "other"; },
                        {.max_bytes = 4000, .max_depth = 20}};
  WatchDecoder decoder{objects};
  std::vector<std::string> events;
  std::vector<std::string> texts;
  Error error;

  void feed(std::string_view bytes) {
    decoder.feed(bytes, [&](WatchEvent&& event) {
      events.push_back(show(event));
      texts.emplace_back(event.text);
      if (event.type == Type::error) error = event.error;
    });
  }
};

TEST_F(WatchDecoding, GivesEventsInOrder) {
  feed(line("ADDED", config_map("a", "1")) + line("MODIFIED", config_map("a", "2")) +
       line("DELETED", config_map("a", "3")) +
       line("BOOKMARK",
            R"({"kind":"ConfigMap","metadata":{"resourceVersion":"9","creationTimestamp":null}})"));
  EXPECT_THAT(events, ElementsAre("added shop/a@1 rv 1", "modified shop/a@2 rv 2",
                                  "deleted shop/a@3 rv 3", "bookmark rv 9"));
  EXPECT_EQ(texts[0], config_map("a", "1"));
  EXPECT_TRUE(decoder.at_line_end());
}

TEST_F(WatchDecoding, ReadsTypeBehindTheObjectAndIgnoresBlankLines) {
  feed("\r\n\n{\"object\":" + config_map("a", "1") + ", \"x\":{}, \"type\" : \"ADDED\"}\r\n \n");
  EXPECT_THAT(events, ElementsAre("added shop/a@1 rv 1"));
}

TEST_F(WatchDecoding, TellsTheBookmarkThatEndsAStreamingList) {
  feed(line(
      "BOOKMARK",
      R"({"metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"12"}})"));
  EXPECT_THAT(events, ElementsAre("initial_events_end rv 12"));
}

TEST_F(WatchDecoding, ReportsVersionsOfObjectsThatAreNotKept) {
  feed(line("ADDED", config_map("other", "5")));
  EXPECT_THAT(events, ElementsAre("dropped rv 5"));
}

TEST_F(WatchDecoding, AC27_MakesErrorsOfStatusObjects) {
  feed(line(
      "ERROR",
      R"({"kind":"Status","message":"too old resource version: 1, current 5","reason":"Expired","code":410})"));
  EXPECT_EQ(error.code, ErrorCode::gone);
  EXPECT_EQ(error.http_status, 410);
  EXPECT_EQ(error.message, "too old resource version: 1, current 5");
  feed(line("ERROR", R"({"message":"slow down","details":{"retryAfterSeconds":3},"code":429})"));
  EXPECT_EQ(error.code, ErrorCode::too_many_requests);
  EXPECT_EQ(error.retry_after, std::chrono::seconds(3));
  feed(
      line("ERROR",
           R"({"reason":"InternalError","details":{"retryAfterSeconds":99999999999},"code":500})"));
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_EQ(error.retry_after, std::chrono::minutes(5));
  EXPECT_EQ(error.message, "InternalError");
  feed(line("ERROR", R"({"reason":"Expired"})"));
  EXPECT_EQ(error.code, ErrorCode::gone);
  feed(line("ERROR", R"("what?")"));
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_EQ(events.size(), 5U);
}

TEST_F(WatchDecoding, AC24_AC25_MalformedLinesAreQuarantinedAndTheWatchGoesOn) {
  const std::string raw_utf8 = line("MODIFIED", config_map("b", "4", ",\"x\":\"\xff\""));
  feed(
      line("ADDED", R"({"metadata":{"name":7,"resourceVersion":"3"}})") + raw_utf8 +
      line("DELETED", R"({"metadata":{"name":"c","resourceVersion":"5","uid":1}})") +
      "{\"type\":\"ADDED\"}\n" + "nonsense\n" + "[1,2]\n" + line("ADDED", "null") +
      line("RENAMED", config_map("d", "6")) + line("BOOKMARK", "{}") +
      "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"e\"},\n" +
      line("ADDED", config_map("f", "7", ",\"x\":" + std::string(30, '[') + std::string(30, ']'))) +
      line("ADDED", config_map("g", "8")));
  EXPECT_THAT(
      events,
      ElementsAre("quarantined : metadata.name is not a string 45 rv 3",
                  "quarantined shop/b: invalid UTF-8 93 rv 4",
                  "quarantined c: metadata.uid is not a string 55 (deletion) rv 5",
                  "quarantined : malformed event 16", "quarantined : malformed event 8",
                  "quarantined : malformed event 5", "quarantined : not an object 4",
                  "quarantined : unknown event type 113",
                  "quarantined : bookmark without resourceVersion 2",
                  "quarantined : malformed event 50",
                  "quarantined shop/f: nested deeper than 20 150 rv 7", "added shop/g@8 rv 8"));
}

TEST_F(WatchDecoding, AC25_LinesOverTheLimitAreSkippedWithoutBeingKept) {
  const auto huge =
      line("DELETED", config_map("huge", "5", ",\"x\":\"" + std::string(100'000, 'x') + "\""));
  const auto other =
      line("ADDED", config_map("other", "6", ",\"x\":\"" + std::string(100'000, 'x') + "\""));
  const auto all = huge + line("ADDED", config_map("a", "6")) + other;
  const auto expected = ElementsAre("quarantined shop/huge: line too long " +
                                        std::to_string(huge.size() - 1) + " (deletion) rv 5",
                                    "added shop/a@6 rv 6", "dropped rv 6");
  feed(all);
  EXPECT_THAT(events, expected);
  events.clear();
  for (std::size_t at = 0; at < all.size(); at += 777) feed(std::string_view(all).substr(at, 777));
  EXPECT_THAT(events, expected);
}

TEST_F(WatchDecoding, AC27_KnowsWhenTheStreamEndedInsideALine) {
  EXPECT_TRUE(decoder.at_line_end());
  const auto whole = line("ADDED", config_map("a", "1"));
  feed(std::string_view(whole).substr(0, 20));
  EXPECT_FALSE(decoder.at_line_end());
  feed(std::string_view(whole).substr(20));
  EXPECT_TRUE(decoder.at_line_end());
  feed(std::string(20'000, 'x'));
  EXPECT_FALSE(decoder.at_line_end());
  decoder.reset();
  EXPECT_TRUE(decoder.at_line_end());
  feed(whole);
  EXPECT_EQ(events.size(), 2U);
}

TEST_F(WatchDecoding, GivesTheSameEventsHoweverTheBytesArrive) {
  std::string all;
  for (int i = 0; i < 30; ++i) {
    const auto name = "app-" + std::to_string(i);
    all += line(i % 3 == 0 ? "MODIFIED" : "ADDED",
                config_map(name, std::to_string(i), i % 7 == 0 ? ",\"x\":tru" : ""));
    if (i % 5 == 0) all += line("BOOKMARK", R"({"metadata":{"resourceVersion":"77"}})");
    if (i % 11 == 0) all += line("ADDED", test::sample_application("ns", name, "5", 10));
  }
  feed(all);
  const auto expected = std::exchange(events, {});
  const auto expected_texts = std::exchange(texts, {});
  std::minstd_rand random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t most = round < 3 ? 1 : 1 + random() % 3000;
    for (std::string_view rest = all; !rest.empty();) {
      const auto size = std::min<std::size_t>(1 + random() % most, rest.size());
      feed(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    ASSERT_EQ(events, expected);
    ASSERT_EQ(texts, expected_texts);
    events.clear();
    texts.clear();
  }
}

TEST_F(WatchDecoding, MayBeResetWhileAnEventIsHandled) {
  int count = 0;
  const auto handle = [&](WatchEvent&&) {
    ++count;
    decoder.reset();
  };
  const auto whole = line("ADDED", config_map("a", "1"));
  decoder.feed(std::string_view(whole).substr(0, 30), handle);
  decoder.feed(std::string(whole.substr(30)) + whole, handle);
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace gitops::k8s
