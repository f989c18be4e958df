#include "app-proxy/logs/log_lines.hpp"

#include <gmock/gmock.h>

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LineSplitter, LinesEndWhereverThePiecesDo) {
  const std::string text = "one\r\n\ntwo\nthree";
  for (std::size_t at = 0; at <= text.size(); ++at) {
    LineSplitter splitter(100, LineSplitter::Long::cut);
    auto lines = splitter.feed(text.substr(0, at));
    for (auto& line : splitter.feed(text.substr(at))) lines.push_back(line);
    for (auto& line : splitter.finish()) lines.push_back(line);
    EXPECT_THAT(lines, ElementsAre("one", "", "two", "three")) << at;
    EXPECT_THAT(splitter.finish(), IsEmpty());
  }
}

TEST(LineSplitter, ALongLineIsCutOrLeftOut) {
  LineSplitter cutting(4, LineSplitter::Long::cut);
  EXPECT_THAT(cutting.feed("abcdefghij\nxyz\n"), ElementsAre("abcd", "efgh", "ij", "xyz"));
  EXPECT_THAT(cutting.feed("abcd\n"), ElementsAre("abcd"));
  LineSplitter dropping(4, LineSplitter::Long::drop);
  EXPECT_THAT(dropping.feed("abc"), IsEmpty());
  EXPECT_THAT(dropping.feed("def"), IsEmpty());
  EXPECT_THAT(dropping.feed("ghi\nxyz\n"), ElementsAre("xyz"));
  EXPECT_EQ(dropping.dropped(), 1U);
  EXPECT_THAT(dropping.feed("abcdefg"), IsEmpty());
  EXPECT_THAT(dropping.finish(), IsEmpty());
  EXPECT_EQ(dropping.dropped(), 2U);
}

TEST(LogLines, OfTheApiServer) {
  EXPECT_EQ(**parse_log_line(LogFormat::kubernetes, "2026-03-04T09:15:27.123456789Z a b"),
            (LogLine{.timestamp = "2026-03-04T09:15:27.123456789Z", .content = "a b"}));
  EXPECT_EQ(**parse_log_line(LogFormat::kubernetes, "2026-03-04T09:15:27Z"),
            (LogLine{.timestamp = "2026-03-04T09:15:27Z"}));
  // The second part of a line that was cut.
  EXPECT_EQ(**parse_log_line(LogFormat::kubernetes, "no time here"),
            (LogLine{.content = "no time here"}));
}

TEST(LogLines, OfTheServersOfArgo) {
  const auto line = [](std::string_view text) { return parse_log_line(LogFormat::argo, text); };
  EXPECT_EQ(**line(R"({"result":{"content":"hi","timeStamp":"2026-03-04T09:15:27Z","last":false,)"
                   R"("timeStampStr":"2026-03-04T09:15:27.5Z","podName":"ui-1"}})"),
            (LogLine{.pod = "ui-1", .timestamp = "2026-03-04T09:15:27.5Z", .content = "hi"}));
  EXPECT_EQ(**line(R"({"result":{"content":"hi","podName":"w-1"}})"),
            (LogLine{.pod = "w-1", .content = "hi"}));
  const auto timed = [](std::string_view text) {
    return parse_log_line(LogFormat::argo_timed, text);
  };
  EXPECT_EQ(**timed(R"({"result":{"content":"2026-03-04T09:15:27.5Z hi you","podName":"w-1"}})"),
            (LogLine{.pod = "w-1", .timestamp = "2026-03-04T09:15:27.5Z", .content = "hi you"}));
  EXPECT_EQ(**timed(R"({"result":{"content":"no time","podName":"w-1"}})"),
            (LogLine{.pod = "w-1", .content = "no time"}));
  EXPECT_FALSE(*timed("{}"));
  EXPECT_FALSE(timed(R"({"error":{"message":"no pods"}})").has_value());
  EXPECT_FALSE(*line(R"({"result":{"content":"","last":true}})"));
  EXPECT_FALSE(*line(""));
  EXPECT_FALSE(*line("{}"));
  EXPECT_EQ(
      line(R"({"error":{"grpc_code":5,"http_code":404,"message":"no pods"}})").error().message,
      "no pods");
  EXPECT_FALSE(line("garbage").has_value());
  EXPECT_LE(
      line(R"({"error":{"message":")" + std::string(10'000, 'x') + "\"}}").error().message.size(),
      500U);
}

TEST(LogLines, OfAWatchOfEvents) {
  const auto line = [](std::string_view text) { return parse_log_line(LogFormat::events, text); };
  EXPECT_EQ(**line(R"({"type":"ADDED","object":{"involvedObject":{"kind":"Pod","name":"p"},)"
                   R"("reason":"Scheduled","message":"on node a","type":"Normal",)"
                   R"("metadata":{"creationTimestamp":"2026-03-04T09:15:20Z"},)"
                   R"("lastTimestamp":"2026-03-04T09:15:27Z"}})"),
            (LogLine{.pod = "p",
                     .timestamp = "2026-03-04T09:15:27Z",
                     .content = "on node a",
                     .reason = "Scheduled",
                     .type = "Normal"}));
  // Newer reporters leave lastTimestamp null.
  EXPECT_EQ((*line(R"({"type":"MODIFIED","object":{"lastTimestamp":null,"eventTime":)"
                   R"("2026-03-04T09:15:27.000001Z"}})"))
                ->timestamp,
            "2026-03-04T09:15:27.000001Z");
  EXPECT_FALSE(*line(R"({"type":"BOOKMARK","object":{}})"));
  EXPECT_FALSE(*line(R"({"type":"DELETED","object":{}})"));
  EXPECT_EQ(line(R"({"type":"ERROR","object":{"message":"too old"}})").error().message, "too old");
}

TEST(LogFilter, TextAndTime) {
  const LogLine line{.timestamp = "2026-03-04T09:15:27Z", .content = "an error here"};
  EXPECT_TRUE(LogFilter().passes(line));
  EXPECT_TRUE((LogFilter{.contains = "error"}).passes(line));
  EXPECT_FALSE((LogFilter{.contains = "!error"}).passes(line));
  EXPECT_FALSE((LogFilter{.contains = "warning"}).passes(line));
  const auto at = *parse_rfc3339("2026-03-04T09:15:27Z");
  EXPECT_TRUE((LogFilter{.since = at, .until = at}).passes(line));
  EXPECT_FALSE((LogFilter{.since = at + std::chrono::seconds(1)}).passes(line));
  EXPECT_FALSE((LogFilter{.until = at - std::chrono::seconds(1)}).passes(line));
  EXPECT_TRUE((LogFilter{.since = at + std::chrono::hours(1)}).passes({.content = "x"}));
}

TEST(Component, IsTheWorkloadOfAPod) {
  EXPECT_EQ(component_of(R"({"metadata":{"name":"cap-6d4-x","labels":{"pod-template-hash":"6d4"},)"
                         R"("ownerReferences":[{"kind":"Node","name":"n"},)"
                         R"({"kind":"ReplicaSet","name":"cap-6d4","controller":true}]}})"),
            "cap");
  EXPECT_EQ(component_of(R"({"metadata":{"name":"event-reporter-0","ownerReferences":)"
                         R"([{"kind":"StatefulSet","name":"event-reporter","controller":true}]}})"),
            "event-reporter");
  EXPECT_EQ(component_of(R"({"metadata":{"name":"alone"}})"), "alone");
  EXPECT_EQ(component_of("garbage"), "");
}

}  // namespace
}  // namespace gitops::app_proxy
