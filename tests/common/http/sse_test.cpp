#include "common/http/sse.hpp"

#include <gmock/gmock.h>

namespace gitops::http {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kMax = 1024;

std::string text_of(const ServerSentEvent& event) {
  std::string out;
  EXPECT_TRUE(append_event(out, event));
  return out;
}

// The events of `text`, which must not depend on how it is split.
std::vector<ServerSentEvent> events_of(std::string_view text) {
  ServerSentEventParser parser(kMax);
  auto whole = parser.feed(text);
  EXPECT_TRUE(whole);
  std::vector<ServerSentEvent> single;
  ServerSentEventParser again(kMax);
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto more = again.feed(text.substr(i, 1));
    EXPECT_TRUE(more);
    for (auto& event : *more) single.push_back(std::move(event));
  }
  EXPECT_EQ(single, *whole) << text;
  return *whole;
}

TEST(ServerSentEvents, AreWrittenLineByLine) {
  EXPECT_EQ(text_of({.data = "hello"}), "data: hello\n\n");
  EXPECT_EQ(text_of({.event = "log", .data = "a\nb", .id = "7"}),
            "id: 7\nevent: log\ndata: a\ndata: b\n\n");
  EXPECT_EQ(text_of({}), "data: \n\n");
}

TEST(ServerSentEvents, DataCannotBecomeAnotherField) {
  for (const std::string data : {"a\nevent: b", "a\revent: b", "a\r\nevent: b", "a\n\nevent: b\n\n",
                                 "\n", "\r\r\n\n", ": x", " leading", "trailing ", "id: 3"}) {
    std::string expected;
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data[i] == '\n' && i > 0 && data[i - 1] == '\r') continue;
      expected += data[i] == '\r' ? '\n' : data[i];
    }
    EXPECT_THAT(events_of(text_of({.data = data})), ElementsAre(ServerSentEvent{.data = expected}));
  }
}

TEST(ServerSentEvents, TypesAndIdsWithLineEndsAreRefused) {
  for (const std::string& wrong :
       {std::string("a\nb"), std::string("a\r"), std::string("a\0b", 3)}) {
    std::string out = "before";
    EXPECT_FALSE(append_event(out, {.event = wrong}));
    EXPECT_FALSE(append_event(out, {.id = wrong}));
    EXPECT_EQ(out, "before");
  }
}

TEST(ServerSentEventParser, ReadsWhatBrowsersRead) {
  EXPECT_THAT(events_of(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
                        "data:  third event\n\n"),
              ElementsAre(ServerSentEvent{.data = "first event", .id = "1"},
                          ServerSentEvent{.data = "second event"},
                          ServerSentEvent{.data = " third event"}));
  EXPECT_THAT(events_of("data\n\ndata\ndata\n\ndata:"),
              ElementsAre(ServerSentEvent{}, ServerSentEvent{.data = "\n"}));
  EXPECT_THAT(events_of("\xef\xbb\xbf"
                        "data: a\r\rdata: b\r\n\r\nevent: c\ndata: d\n\n"),
              ElementsAre(ServerSentEvent{.data = "a"}, ServerSentEvent{.data = "b"},
                          ServerSentEvent{.event = "c", .data = "d"}));
  EXPECT_THAT(events_of("event: lonely\n\nunknown: x\n\n"), IsEmpty());
  EXPECT_THAT(events_of("id: 1\ndata: a\n\ndata: b\n\n"),
              ElementsAre(ServerSentEvent{.data = "a", .id = "1"},
                          ServerSentEvent{.data = "b", .id = "1"}));
  EXPECT_THAT(events_of(std::string(kServerSentHeartbeat)), IsEmpty());
}

TEST(ServerSentEventParser, NotesTheTimeToTheNextConnection) {
  ServerSentEventParser parser(kMax);
  ASSERT_TRUE(parser.feed("retry: soon\nretry: -1\n"));
  EXPECT_EQ(parser.retry(), std::nullopt);
  ASSERT_TRUE(parser.feed("retry: 1500\n"));
  EXPECT_EQ(parser.retry(), std::chrono::milliseconds(1500));
}

TEST(ServerSentEventParser, LimitsAnEvent) {
  ServerSentEventParser line(kMax);
  EXPECT_EQ(line.feed("data: " + std::string(kMax, 'x')).error().code, ErrorCode::too_large);
  ServerSentEventParser lines(kMax);
  Result<std::vector<ServerSentEvent>> fed;
  std::size_t size = 0;
  while (fed && size < 3 * kMax) {
    fed = lines.feed("data: " + std::string(100, 'x') + "\n");
    size += 100;
  }
  EXPECT_LE(size, kMax + 100);
  ServerSentEventParser many(kMax);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(many.feed("data: " + std::string(100, 'x') + "\n\n"));
}

}  // namespace
}  // namespace gitops::http
