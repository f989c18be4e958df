#include "k8s-client/reflector.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "k8s-client/status.hpp"

namespace gitops::k8s {
namespace {

using namespace std::chrono_literals;
using Kind = Reflector::Action::Kind;

Error error_of(ErrorCode code, std::chrono::milliseconds retry_after = 0ms) {
  return {.code = code, .message = "told so", .retry_after = retry_after};
}

// Drives a Reflector; time passes only when a test says so.
struct Driver {
  explicit Driver(Reflector::Options options = {}) : reflector(options, 0x1234'5678'9abc'def0) {}

  // The next action that is neither a wait nor a check; `waited` is set to the delay before it, and
  // checks find our version.
  Reflector::Action next() {
    waited = std::nullopt;
    auto action = reflector.next();
    while (action.kind == Kind::wait || action.kind == Kind::check) {
      if (action.kind == Kind::check) {
        reflector.on_server_version(reflector.resource_version());
      } else {
        EXPECT_EQ(std::exchange(waited, action.delay), std::nullopt);
      }
      action = reflector.next();
    }
    return action;
  }
  // Brings a new reflector to a live watch by a streaming list that ended at `version`.
  void sync_by_streaming(const std::string& version = "100") {
    const auto action = next();
    EXPECT_TRUE(action.send_initial_events);
    reflector.on_watch_open(now);
    reflector.on_event("3");
    reflector.on_initial_events_end(version);
  }
  void sync_by_pages(const std::string& version = "100") {
    EXPECT_EQ(next().kind, Kind::list);
    EXPECT_TRUE(reflector.on_list_page(version, ""));
  }
  void end(std::optional<Error> error = {}) {
    reflector.on_watch_end(error ? &*error : nullptr, now);
  }
  // Runs a watch that ends with `error` after `lived`.
  void watch(std::optional<Error> error, Clock::duration lived = 0s,
             const std::string& event = "") {
    EXPECT_EQ(next().kind, Kind::watch);
    reflector.on_watch_open(now);
    now += lived;
    if (!event.empty()) reflector.on_event(event);
    end(std::move(error));
  }

  Reflector reflector;
  Clock::time_point now = Clock::time_point() + 1h;
  std::optional<std::chrono::milliseconds> waited;
};
const Reflector::Options kPaged{.streaming_list = false};

// ---- lists ----

TEST(Reflector, StartsWithAStreamingListAndGoesOnInTheSameWatch) {
  Driver driver;
  const auto action = driver.next();
  EXPECT_EQ(action.kind, Kind::watch);
  EXPECT_TRUE(action.send_initial_events);
  EXPECT_TRUE(action.begins_list());
  EXPECT_EQ(action.resource_version, "");
  EXPECT_EQ(driver.waited, std::nullopt);
  EXPECT_EQ(driver.reflector.list_reason(), "start");
  driver.reflector.on_watch_open(driver.now);
  driver.reflector.on_event("50");
  EXPECT_FALSE(driver.reflector.synced());
  EXPECT_TRUE(driver.reflector.in_streaming_list());
  EXPECT_EQ(driver.reflector.resource_version(), "")
      << "versions of a list's content are no versions of the list";
  driver.reflector.on_initial_events_end("40");
  EXPECT_TRUE(driver.reflector.synced());
  EXPECT_FALSE(driver.reflector.in_streaming_list());
  EXPECT_EQ(driver.reflector.resource_version(), "40");
  driver.reflector.on_event("51");
  EXPECT_EQ(driver.reflector.resource_version(), "51");
}

TEST(Reflector, PagesWithoutAVersionAndWatchesFromTheFirstPagesVersion) {
  Driver driver({.streaming_list = false, .page_limit = 7});
  auto action = driver.next();
  EXPECT_EQ(action.kind, Kind::list);
  EXPECT_TRUE(action.begins_list());
  EXPECT_EQ(action.limit, 7U);
  EXPECT_FALSE(driver.reflector.on_list_page("100", "more"));
  action = driver.next();
  EXPECT_EQ(action.kind, Kind::list);
  EXPECT_EQ(action.continue_token, "more");
  EXPECT_FALSE(action.begins_list());
  EXPECT_FALSE(driver.reflector.synced());
  EXPECT_TRUE(driver.reflector.on_list_page("105", ""));
  EXPECT_TRUE(driver.reflector.synced());
  action = driver.next();
  EXPECT_EQ(action.kind, Kind::watch);
  EXPECT_EQ(action.resource_version, "100");
  EXPECT_FALSE(action.send_initial_events);
  EXPECT_FALSE(action.begins_list());
}

TEST(Reflector, AsksAgainForAPageThatFailedInPassing) {
  for (const auto code :
       {ErrorCode::unavailable, ErrorCode::too_many_requests, ErrorCode::timeout}) {
    Driver driver(kPaged);
    driver.next();
    driver.reflector.on_list_page("100", "more");
    driver.next();
    driver.reflector.on_list_error(error_of(code));
    const auto action = driver.next();
    EXPECT_TRUE(driver.waited.has_value());
    EXPECT_EQ(action.continue_token, "more");
  }
}

TEST(Reflector, StartsAListAgainAfterOtherFailures) {
  for (const auto code : {ErrorCode::invalid_argument, ErrorCode::invalid_data,
                          ErrorCode::forbidden, ErrorCode::not_found}) {
    Driver driver(kPaged);
    driver.next();
    driver.reflector.on_list_page("100", "more");
    driver.next();
    driver.reflector.on_list_error(error_of(code));
    const auto action = driver.next();
    EXPECT_TRUE(driver.waited.has_value());
    EXPECT_EQ(action.kind, Kind::list);
    EXPECT_TRUE(action.begins_list());
    EXPECT_EQ(driver.reflector.list_reason(), "failed");
  }
}

TEST(Reflector, AC25_HalvesPagesThatAreTooLarge) {
  Driver driver({.streaming_list = false, .page_limit = 5});
  driver.next();
  driver.reflector.on_list_page("100", "more");
  for (const std::size_t limit : {2U, 1U}) {
    driver.next();
    driver.reflector.on_list_error(error_of(ErrorCode::too_large));
    const auto action = driver.next();
    EXPECT_EQ(driver.waited, std::nullopt);
    EXPECT_EQ(action.limit, limit);
    EXPECT_EQ(action.continue_token, "more");
  }
  driver.reflector.on_list_error(error_of(ErrorCode::too_large));
  EXPECT_TRUE(driver.next().begins_list());
  EXPECT_TRUE(driver.waited.has_value())
      << "a single object that is too large must not become a hot loop";
}

// The connection is too slow for 500 objects within the time limit.
TEST(Reflector, PagesThatTakeTooLongBecomeSmaller) {
  Driver driver({.streaming_list = false, .page_limit = 500});
  driver.next();
  for (const std::size_t limit : {250U, 125U, 62U, 50U, 50U}) {
    driver.reflector.on_list_error(error_of(ErrorCode::timeout));
    EXPECT_EQ(driver.next().limit, limit);
    EXPECT_TRUE(driver.waited.has_value());
  }
}

TEST(Reflector, AWholeListThatTakesTooLongGoesBackToPages) {
  Driver driver(kPaged);
  driver.next();
  driver.reflector.on_list_page("100", "more");
  driver.next();
  driver.reflector.on_list_error(error_of(ErrorCode::gone));
  EXPECT_EQ(driver.next().limit, 0U);
  driver.reflector.on_list_error(error_of(ErrorCode::timeout));
  EXPECT_GT(driver.next().limit, 0U);
  EXPECT_TRUE(driver.waited.has_value());
}

TEST(Reflector, LimitsThatWereHalvedRecoverListByList) {
  Driver driver({.streaming_list = false, .page_limit = 500});
  driver.next();
  for (int i = 0; i < 5; ++i) driver.reflector.on_list_error(error_of(ErrorCode::too_large));
  for (const std::size_t limit : {15U, 30U, 60U, 120U, 240U, 480U, 500U, 500U}) {
    EXPECT_EQ(driver.next().limit, limit);
    driver.reflector.on_list_page("100", "");
    driver.watch(error_of(ErrorCode::gone));
  }
}

TEST(Reflector, TakesTheListWholeWhenTheRestOfItsPagesIsGone) {
  Driver driver(kPaged);
  driver.next();
  driver.reflector.on_list_page("100", "more");
  EXPECT_EQ(driver.next().continue_token, "more");
  driver.reflector.on_list_error(error_of(ErrorCode::gone));
  auto action = driver.next();
  EXPECT_EQ(driver.waited, std::nullopt);
  EXPECT_TRUE(action.begins_list());
  EXPECT_EQ(action.limit, 0U);
  driver.reflector.on_list_error(error_of(ErrorCode::unavailable));
  EXPECT_EQ(driver.next().limit, 0U) << "again, for a failure that passes";
  EXPECT_TRUE(driver.reflector.on_list_page("200", ""));
  driver.watch(error_of(ErrorCode::gone));
  EXPECT_EQ(driver.next().limit, 500U) << "that list alone";
}

TEST(Reflector, AC25_AWholeListThatIsTooLargeGoesBackToPages) {
  Driver driver(kPaged);
  driver.next();
  driver.reflector.on_list_page("100", "more");
  driver.next();
  driver.reflector.on_list_error(error_of(ErrorCode::gone));
  EXPECT_EQ(driver.next().limit, 0U);
  driver.reflector.on_list_error(error_of(ErrorCode::too_large));
  const auto action = driver.next();
  EXPECT_TRUE(driver.waited.has_value());
  EXPECT_TRUE(action.begins_list());
  EXPECT_EQ(action.limit, 500U);
}

TEST(Reflector, AC27_GoneWhilePagingStartsTheListAgainAndBacksOffWhenItGoesOn) {
  Driver driver(kPaged);
  std::chrono::milliseconds most{0};
  for (int round = 0; round < 12; ++round) {
    const auto action = driver.next();
    EXPECT_TRUE(action.begins_list());
    EXPECT_EQ(driver.waited.has_value(), round > 1) << round;
    most = std::max(most, driver.waited.value_or(0ms));
    driver.reflector.on_list_page("100", "more");
    EXPECT_EQ(driver.next().continue_token, "more");
    driver.reflector.on_list_error(error_of(ErrorCode::gone));
    EXPECT_EQ(driver.reflector.list_reason(), "gone");
    EXPECT_FALSE(driver.reflector.synced());
  }
  EXPECT_GT(most, 3s);
}

// ---- streaming lists ----

TEST(Reflector, GoesOverToPagesForGoodWhenStreamingListsAreRefused) {
  Driver driver;
  driver.next();
  driver.end(error_of(ErrorCode::invalid_argument));  // 400 and 422
  auto action = driver.next();
  EXPECT_EQ(action.kind, Kind::list);
  EXPECT_EQ(driver.waited, std::nullopt);
  EXPECT_EQ(driver.reflector.list_reason(), "streaming_refused");
  driver.reflector.on_list_page("100", "");
  driver.watch(error_of(ErrorCode::gone));
  EXPECT_EQ(driver.next().kind, Kind::list);
}

TEST(Reflector, AC27_GoesOverToPagesWhenAStreamingListSendsNothing) {
  Driver driver;
  driver.watch(error_of(ErrorCode::timeout), 60s);
  EXPECT_EQ(driver.next().kind, Kind::list);
  EXPECT_EQ(driver.waited, std::nullopt);
}

TEST(Reflector, StreamsTheNextListAgainAfterOneThatSentNothing) {
  Driver driver;
  driver.watch(error_of(ErrorCode::timeout), 60s);
  EXPECT_EQ(driver.next().kind, Kind::list);
  EXPECT_EQ(driver.reflector.list_reason(), "streaming_failed");
  driver.reflector.on_list_error(error_of(ErrorCode::gone));
  EXPECT_EQ(driver.next().kind, Kind::list) << "still the same list";
  driver.reflector.on_list_page("100", "");
  driver.watch(error_of(ErrorCode::gone));
  EXPECT_TRUE(driver.next().send_initial_events);
}

TEST(Reflector, StreamsTheNextListAgainAfterTwoThatEndedWithoutTheirBookmark) {
  Driver driver;
  driver.watch({}, 5s);
  driver.watch({}, 5s);
  EXPECT_EQ(driver.next().kind, Kind::list);
  driver.reflector.on_list_page("100", "");
  driver.watch(error_of(ErrorCode::gone));
  driver.watch({}, 5s);
  EXPECT_EQ(driver.next().kind, Kind::list) << "one more such end is enough from then on";
  driver.reflector.on_list_page("100", "");
  driver.watch(error_of(ErrorCode::gone));
  EXPECT_TRUE(driver.next().send_initial_events);
  driver.reflector.on_watch_open(driver.now);
  driver.reflector.on_initial_events_end("200");
  EXPECT_TRUE(driver.reflector.synced());
}

TEST(Reflector, KeepsStreamingListsWhenTheServerCouldNotBeReached) {
  for (const auto code : {ErrorCode::timeout, ErrorCode::unavailable, ErrorCode::too_many_requests,
                          ErrorCode::forbidden}) {
    Driver driver;
    driver.next();
    driver.end(error_of(code));  // before its head arrived
    EXPECT_TRUE(driver.next().send_initial_events);
    EXPECT_TRUE(driver.waited.has_value());
  }
}

TEST(Reflector, AC27_StreamingListsThatEndWithoutTheirBookmark) {
  Driver driver;
  driver.watch({}, 5s, "7");
  EXPECT_FALSE(driver.reflector.synced());
  EXPECT_TRUE(driver.next().send_initial_events) << "once may be a restart";
  EXPECT_TRUE(driver.waited.has_value());
  driver.reflector.on_watch_open(driver.now);
  driver.end();
  EXPECT_EQ(driver.next().kind, Kind::list) << "twice in a row is a server that ignores the option";
}

TEST(Reflector, StreamingListsThatFailAreRepeatedFromTheBeginning) {
  Driver driver;
  driver.watch(error_of(ErrorCode::unavailable), 5s, "7");
  EXPECT_FALSE(driver.reflector.synced());
  const auto action = driver.next();
  EXPECT_TRUE(action.send_initial_events);
  EXPECT_EQ(action.resource_version, "");
}

// A proxy that limits the time of a response cuts each of them.
TEST(Reflector, StreamingListsThatFailTwiceAreReplacedByPages) {
  Driver driver;
  driver.watch(error_of(ErrorCode::unavailable), 30s, "7");
  driver.watch(error_of(ErrorCode::unavailable), 30s, "7");
  EXPECT_EQ(driver.next().kind, Kind::list);
  EXPECT_TRUE(driver.waited.has_value());
  EXPECT_EQ(driver.reflector.list_reason(), "streaming_failed");
  driver.reflector.on_list_page("100", "");
  EXPECT_TRUE(driver.reflector.synced());
  driver.watch(error_of(ErrorCode::gone));
  EXPECT_TRUE(driver.next().send_initial_events) << "the next list is a streaming one again";
}

TEST(Reflector, AC27_GoneDuringStreamingListsBacksOffThoughEventsArrived) {
  Driver driver;
  for (int round = 0; round < 8; ++round) {
    driver.watch(error_of(ErrorCode::gone), 1s, std::to_string(round + 1));
    EXPECT_EQ(driver.waited.has_value(), round > 1) << round;
  }
}

// ---- watches ----

TEST(Reflector, ResumesAtOnceWhereACleanWatchEnded) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  driver.watch({}, 10s);
  auto action = driver.next();
  EXPECT_EQ(driver.waited, std::nullopt);
  EXPECT_EQ(action.resource_version, "100");
  driver.reflector.on_watch_open(driver.now);
  driver.reflector.on_event("101");
  driver.reflector.on_bookmark("150");
  driver.end();
  action = driver.next();
  EXPECT_EQ(driver.waited, std::nullopt) << "quick, but with news";
  EXPECT_EQ(action.resource_version, "150");
  EXPECT_TRUE(driver.reflector.synced());
}

TEST(Reflector, AC27_WatchesThatEndTooQuicklyBackOff) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  std::chrono::milliseconds most{0};
  for (int round = 0; round < 12; ++round) {
    driver.watch({}, 10ms);
    EXPECT_EQ(driver.waited.has_value(), round > 0);
    most = std::max(most, driver.waited.value_or(0ms));
  }
  EXPECT_GT(most, 3s);
  EXPECT_LE(most, 30s);
}

TEST(Reflector, AC27_BookmarkOnlyStreamsMoveTheVersionButAreNoNews) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  for (int round = 1; round < 5; ++round) {
    EXPECT_EQ(driver.next().resource_version, std::to_string(99 + round));
    EXPECT_EQ(driver.waited.has_value(), round > 1);
    driver.reflector.on_watch_open(driver.now);
    driver.reflector.on_bookmark(std::to_string(100 + round));
    driver.end();
  }
}

TEST(Reflector, AC27_TheSameEventOverAndOverIsNoNews) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  for (int round = 0; round < 5; ++round) {
    driver.watch({}, 10ms, "101");
    EXPECT_EQ(driver.waited.has_value(), round > 1) << round;
  }
}

TEST(Reflector, AC27_IgnoresBookmarksThatGoBack) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  driver.next();
  driver.reflector.on_bookmark("99");
  EXPECT_EQ(driver.reflector.resource_version(), "100");
  driver.reflector.on_bookmark("1000");
  EXPECT_EQ(driver.reflector.resource_version(), "1000");
  driver.reflector.on_bookmark("999");
  EXPECT_EQ(driver.reflector.resource_version(), "1000");
  driver.reflector.on_bookmark("opaque");
  EXPECT_EQ(driver.reflector.resource_version(), "opaque") << "what is no number cannot go back";
  driver.reflector.on_initial_events_end("1001");
  EXPECT_EQ(driver.reflector.resource_version(), "1001")
      << "out of place, a bookmark like any other";
}

TEST(Reflector, AC27_GoneDuringAWatchListsAtOnceAndBacksOffWhenItGoesOn) {
  for (const auto& options : {Reflector::Options{}, kPaged}) {
    Driver driver(options);
    const auto sync = [&] {
      if (options.streaming_list) {
        driver.sync_by_streaming();
      } else {
        driver.sync_by_pages();
        driver.next();
      }
    };
    sync();
    driver.end(error_of(ErrorCode::gone));
    EXPECT_FALSE(driver.reflector.synced());
    sync();
    EXPECT_EQ(driver.reflector.list_reason(), "gone");
    driver.end(error_of(ErrorCode::gone));
    EXPECT_TRUE(driver.next().begins_list());
    EXPECT_TRUE(driver.waited.has_value()) << "the second in a row";
  }
}

TEST(Reflector, NewsEndsARowOfGone) {
  Driver driver(kPaged);
  for (int round = 0; round < 5; ++round) {
    driver.sync_by_pages("100");
    EXPECT_EQ(driver.waited, std::nullopt) << round;
    driver.watch(error_of(ErrorCode::gone), 1s, "101");
  }
}

TEST(Reflector, AVersionAheadOfTheServersMeansAList) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  driver.next();
  driver.end(Error{.code = ErrorCode::unavailable,
                   .message = "watch: 504 Timeout: Too large resource version: 100, current: 7",
                   .http_status = 504,
                   .reason = "Timeout",
                   .cause = std::string(causes::kResourceVersionTooLarge)});
  EXPECT_TRUE(driver.next().begins_list());
  EXPECT_EQ(driver.waited, std::nullopt);
}

TEST(Reflector, TheWordsOfAFailureDecideNothing) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  driver.next();
  driver.end(Error{.code = ErrorCode::unavailable,
                   .message = "watch: 504 Timeout: Too large resource version: 100, current: 7",
                   .http_status = 504});
  const auto action = driver.next();
  EXPECT_EQ(action.kind, Kind::watch);
  EXPECT_EQ(action.resource_version, "100");
  EXPECT_NE(driver.waited, std::nullopt);
}

// ---- restored servers ----

TEST(Reflector, ChecksTheServersVersionBeforeAWatchResumes) {
  for (const auto& end :
       {std::optional<Error>(), std::optional(error_of(ErrorCode::unavailable))}) {
    Driver driver(kPaged);
    driver.sync_by_pages("100");
    EXPECT_EQ(driver.reflector.next().kind, Kind::watch) << "the list has just shown it";
    driver.reflector.on_watch_open(driver.now);
    driver.reflector.on_bookmark("150");
    driver.now += 10s;
    driver.end(end);
    auto action = driver.reflector.next();
    if (end) {
      EXPECT_EQ(action.kind, Kind::wait);
      action = driver.reflector.next();
    }
    EXPECT_EQ(action.kind, Kind::check);
    driver.reflector.on_server_version("150");
    action = driver.reflector.next();
    EXPECT_EQ(action.kind, Kind::watch);
    EXPECT_EQ(action.resource_version, "150");
    EXPECT_EQ(driver.reflector.epoch(), 0U);
  }
}

TEST(Reflector, AServerBehindOurVersionMeansAListAndANewEpoch) {
  for (const auto& options : {Reflector::Options{}, kPaged}) {
    Driver driver(options);
    options.streaming_list ? driver.sync_by_streaming("100") : driver.sync_by_pages("100");
    if (!options.streaming_list) {
      driver.next();
      driver.reflector.on_watch_open(driver.now);
    }
    driver.now += 10s;
    driver.end();
    EXPECT_EQ(driver.reflector.next().kind, Kind::check);
    driver.reflector.on_server_version("99");
    EXPECT_FALSE(driver.reflector.synced());
    EXPECT_EQ(driver.reflector.list_reason(), "restored");
    EXPECT_EQ(driver.reflector.epoch(), 1U);
    const auto action = driver.reflector.next();
    EXPECT_TRUE(action.begins_list()) << "at once, and without another check";
    EXPECT_EQ(action.send_initial_events, options.streaming_list);
  }
}

TEST(Reflector, ARestoreIsNoticedBeforeAListToo) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  driver.next();
  driver.end(error_of(ErrorCode::gone));
  EXPECT_EQ(driver.reflector.next().kind, Kind::check);
  driver.reflector.on_server_version("7");
  EXPECT_EQ(driver.reflector.epoch(), 1U);
}

TEST(Reflector, AFailedCheckIsRepeatedWithBackoffAndProvesNothing) {
  Driver driver(kPaged);
  driver.sync_by_pages("100");
  driver.next();
  driver.reflector.on_watch_open(driver.now);
  driver.now += 10s;
  driver.end();
  for (const auto code : {ErrorCode::unavailable, ErrorCode::forbidden, ErrorCode::invalid_data,
                          ErrorCode::gone, ErrorCode::timeout}) {
    EXPECT_EQ(driver.reflector.next().kind, Kind::check);
    driver.reflector.on_check_error(error_of(code, 5s));
    const auto action = driver.reflector.next();
    EXPECT_EQ(action.kind, Kind::wait);
    EXPECT_GE(action.delay, 5s);
    EXPECT_TRUE(driver.reflector.synced());
  }
  EXPECT_EQ(driver.reflector.epoch(), 0U);
}

TEST(Reflector, VersionsThatAreNoNumbersAreNotChecked) {
  Driver driver(kPaged);
  driver.sync_by_pages("opaque");
  driver.watch({}, 10s);
  EXPECT_EQ(driver.reflector.next().kind, Kind::watch);
}

TEST(Reflector, ServersRestoredOverAndOverBackOff) {
  Driver driver(kPaged);
  for (int round = 0; round < 5; ++round) {
    driver.sync_by_pages("100");
    EXPECT_EQ(driver.waited.has_value(), round > 1) << round;
    EXPECT_EQ(driver.reflector.next().kind, Kind::watch);
    driver.reflector.on_watch_open(driver.now);
    driver.now += 10s;
    driver.end();
    EXPECT_EQ(driver.reflector.next().kind, Kind::check);
    driver.reflector.on_server_version("99");
  }
}

TEST(Reflector, KnowsWhetherTheServerSendsBookmarks) {
  Driver driver;
  driver.sync_by_streaming();
  EXPECT_FALSE(driver.reflector.has_seen_bookmark()) << "the one that ends a list is not periodic";
  driver.reflector.on_bookmark("101");
  EXPECT_TRUE(driver.reflector.has_seen_bookmark());
}

TEST(Reflector, AVersionThatTheServerDoesNotUnderstandMeansAList) {
  Driver driver(kPaged);
  driver.sync_by_pages("garbage");
  driver.next();
  driver.end(error_of(ErrorCode::invalid_argument));
  EXPECT_TRUE(driver.next().begins_list());
  EXPECT_TRUE(driver.waited.has_value());
}

struct FailedWatch {
  ErrorCode code;
  std::chrono::milliseconds retry_after;
};

TEST(Reflector, AC27_FailedWatchesResumeAfterBackoffAndAtLeastRetryAfter) {
  for (const auto& [code, retry_after] :
       {FailedWatch{ErrorCode::too_many_requests, 7s}, FailedWatch{ErrorCode::unavailable, 0s},
        FailedWatch{ErrorCode::unavailable, 40s}, FailedWatch{ErrorCode::timeout, 0s},
        FailedWatch{ErrorCode::protocol, 0s}, FailedWatch{ErrorCode::forbidden, 0s},
        FailedWatch{ErrorCode::unauthenticated, 0s}, FailedWatch{ErrorCode::tls, 0s},
        FailedWatch{ErrorCode::not_found, 0s}}) {
    Driver driver(kPaged);
    driver.sync_by_pages("100");
    for (int round = 0; round < 10; ++round) {
      const auto action = driver.next();
      EXPECT_EQ(action.kind, Kind::watch);
      EXPECT_EQ(action.resource_version, "100");
      if (round > 0) {
        ASSERT_TRUE(driver.waited.has_value());
        EXPECT_GE(*driver.waited, retry_after);
        EXPECT_LE(*driver.waited, std::max<std::chrono::milliseconds>(30s, retry_after * 11 / 10));
      }
      driver.end(error_of(code, retry_after));
      EXPECT_TRUE(driver.reflector.synced()) << "the list is still complete, only stale";
    }
  }
}

TEST(Reflector, BackoffStartsOverAfterNewsOrTwoHealthyMinutes) {
  for (const bool with_news : {true, false}) {
    Driver driver(kPaged);
    driver.sync_by_pages("100");
    for (int round = 0; round < 12; ++round) driver.watch(error_of(ErrorCode::unavailable));
    if (with_news) {
      driver.watch(error_of(ErrorCode::unavailable), 1s, "101");
    } else {
      driver.watch(error_of(ErrorCode::unavailable), 121s);
    }
    driver.next();
    EXPECT_LE(driver.waited, 200ms);
  }
}

TEST(Reflector, ChoosesWatchTimeoutsAtRandomWithinTheRange) {
  Driver driver({.streaming_list = false, .watch_timeout_min = 10s, .watch_timeout_max = 20s});
  driver.sync_by_pages();
  std::set<std::chrono::seconds> seen;
  for (int round = 0; round < 300; ++round) {
    const auto action = driver.next();
    seen.insert(action.timeout);
    driver.reflector.on_watch_open(driver.now);
    driver.now += 10s;
    driver.end();
  }
  EXPECT_EQ(*seen.begin(), 10s);
  EXPECT_EQ(*seen.rbegin(), 20s);
  EXPECT_EQ(seen.size(), 11U);
}

}  // namespace
}  // namespace gitops::k8s
