#include "app-proxy/logs/log_streams.hpp"

#include <gmock/gmock.h>

#include "support/process.hpp"

namespace gitops::app_proxy {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

TEST(LogStreams, TheBoundsOfAChoice) {
  const auto now = *parse_rfc3339("2026-03-04T10:00:00Z");
  EXPECT_FALSE(age_of(*filter_of({}, now), now));
  EXPECT_EQ(*age_of(*filter_of({.since_seconds = 90}, now), now), seconds(90));
  EXPECT_EQ(*age_of(*filter_of({.since_seconds = -5}, now), now), seconds(1));
  EXPECT_EQ(*age_of(*filter_of({.since_time = "2026-03-04T09:59:00Z"}, now), now), seconds(60));
  // The narrower of the two.
  EXPECT_EQ(
      *age_of(*filter_of({.since_seconds = 30, .since_time = "2026-03-04T09:59:00Z"}, now), now),
      seconds(30));
  // A time that is still to come.
  EXPECT_EQ(*age_of(*filter_of({.since_time = "2026-03-04T11:00:00Z"}, now), now), seconds(1));
  EXPECT_EQ(*filter_of({.until_time = "2026-03-04T10:00:00Z"}, now)->until, now);
  EXPECT_EQ(filter_of({.since_time = "yesterday"}, now).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(filter_of({.until_time = "x"}, now).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(filter_of({.since_seconds = std::numeric_limits<std::int64_t>::max()}, now));
}

TEST(LogStreams, ThePartsOfTheRuntime) {
  using Part = LogStreams::Part;
  EXPECT_THAT(
      parts_of(R"({"items":[{"metadata":{"name":"a-0","ownerReferences":[{"kind":"StatefulSet",)"
               R"("name":"a","controller":true}]},"spec":{"containers":[{"name":"main"},)"
               R"({"name":"side"}]}},{"metadata":{"name":"alone"}}]})"),
      ElementsAre(Part{"a", "a-0", "main"}, Part{"a", "a-0", "side"}));
  EXPECT_TRUE(parts_of("{}").empty());
}

// tar itself reads it.
TEST(LogStreams, TheArchiveIsATarFile) {
  const test::TempDir folder;
  const std::string log = "one\ntwo\n";
  const auto path = folder / "logs.tar";
  test::write_file(
      path, tar_header("cap-app-proxy.log", log.size(), *parse_rfc3339("2026-03-04T09:15:27Z")) +
                log + tar_padding(log.size()) + tar_header("empty.log", 0, {}) + tar_padding(0) +
                std::string(kTarEnd, '\0'));
  EXPECT_EQ(test::run_or_throw({"tar", "-tvf", path.string(), "--utc"}).substr(0, 10),
            "-rw-r--r--");
  EXPECT_EQ(test::run_or_throw({"tar", "-xOf", path.string(), "cap-app-proxy.log"}) + "\n", log);
}

}  // namespace
}  // namespace gitops::app_proxy
