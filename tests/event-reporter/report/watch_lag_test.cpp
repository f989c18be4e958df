#include "event-reporter/report/watch_lag.hpp"

#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

// Answers of the API server, of which each is given when the test adds it.
struct Answers {
  explicit Answers(const Executor& executor) : changed(executor) {}
  Task<Result<std::string>> next() {
    ++requests;
    while (waiting.empty()) co_await changed.wait();
    auto answer = waiting.front();
    waiting.pop_front();
    co_return answer;
  }
  void give(Result<std::string> answer) {
    waiting.push_back(std::move(answer));
    changed.notify_all();
  }
  std::deque<Result<std::string>> waiting;
  std::size_t requests = 0;
  Event changed;
};

void play(const std::function<Task<>(WatchLag&, Answers&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Answers answers(executor);
    WatchLag lag(executor, [&answers] { return answers.next(); });
    TaskGroup group(executor, [](const auto& task, const auto& what) {
      ADD_FAILURE() << task << ": " << what;
    });
    group.spawn("lag", [&lag] { return lag.run(); });
    co_await body(lag, answers);
    group.cancel();
    co_await group.join();
  });
}

TEST(WatchLag, WhatIsNotNewerThanATakeOverMayBeOutdated) {
  play([](WatchLag& lag, Answers& answers) -> Task<> {
    EXPECT_FALSE(lag.may_be_outdated(1, "7")) << "nothing was taken over";
    lag.taken_over(1);
    EXPECT_TRUE(lag.may_be_outdated(1, "7")) << "no version is known yet";
    EXPECT_FALSE(lag.may_be_outdated(2, "7"));
    answers.give("90");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !lag.may_be_outdated(1, "100"); },
                                             "version 100 to be current"));
    EXPECT_TRUE(lag.may_be_outdated(1, "90"));
    EXPECT_TRUE(lag.may_be_outdated(1, "9")) << "as numbers";
    EXPECT_FALSE(lag.may_be_outdated(1, "91"));
  });
}

TEST(WatchLag, ARequestThatWasMadeBeforeATakeOverDoesNotCountForIt) {
  play([](WatchLag& lag, Answers& answers) -> Task<> {
    lag.taken_over(1);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return answers.requests == 1; },
                                             "a request for the version"));
    lag.taken_over(2);
    lag.taken_over(1);
    answers.give("10");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return answers.requests == 2; },
                                             "2 requests for the version"));
    EXPECT_TRUE(lag.may_be_outdated(1, "15"));
    EXPECT_TRUE(lag.may_be_outdated(2, "15"));
    answers.give("20");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !lag.may_be_outdated(1, "21"); },
                                             "version 21 to be current"));
    EXPECT_TRUE(lag.may_be_outdated(1, "15"));
    EXPECT_TRUE(lag.may_be_outdated(2, "15"));
    EXPECT_FALSE(lag.may_be_outdated(2, "21"));
  });
}

TEST(WatchLag, AFailedRequestIsMadeAgain) {
  play([](WatchLag& lag, Answers& answers) -> Task<> {
    lag.taken_over(1);
    answers.give(fail(ErrorCode::unavailable, "away"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return answers.requests == 2; },
                                             "2 requests for the version"));
    EXPECT_TRUE(lag.may_be_outdated(1, "15"));
    answers.give("10");
    EXPECT_TRUE(co_await test::eventually([&] { return !lag.may_be_outdated(1, "15"); },
                                          "version 15 to be current"));
  });
}

TEST(WatchLag, AfterARestoreTheVersionIsRequestedAgain) {
  play([](WatchLag& lag, Answers& answers) -> Task<> {
    lag.taken_over(1);
    answers.give("1000");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !lag.may_be_outdated(1, "1001"); },
                                             "version 1001 to be current"));
    lag.restored();
    EXPECT_TRUE(lag.may_be_outdated(1, "1001"));
    answers.give("10");
    EXPECT_TRUE(co_await test::eventually([&] { return !lag.may_be_outdated(1, "11"); },
                                          "version 11 to be current"));
    EXPECT_TRUE(lag.may_be_outdated(1, "10"));
  });
}

}  // namespace
}  // namespace gitops::reporter
