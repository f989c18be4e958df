#include "event-reporter/argo/argocd_token.hpp"

#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

#include "support/run_coro.hpp"

namespace gitops::reporter {
namespace {

// An account as argocd-server keeps it: failures that are at most 300 s apart add up.
struct Account {
  unsigned failures = 0;
  unsigned most = 0;
  Clock::time_point last{};

  void fail() {
    if (Clock::now() - last > std::chrono::seconds(300)) failures = 0;
    last = Clock::now();
    most = std::max(most, ++failures);
  }
};

TEST(SessionCredential, AWrongPasswordLocksNobodyOut) {
  for (const std::uint32_t replicas : {0U, 1U, 2U, 4U}) {
    test::run_in_test_time([&]() -> Task<> {
      Account account;
      const auto log_in = [&account]() -> Task<Result<Secret>> {
        account.fail();
        co_return fail(ErrorCode::unauthenticated, "invalid username or password");
      };
      std::deque<Credential> credentials;
      TaskGroup tasks(co_await asio::this_coro::executor);
      for (std::uint32_t i = 0; i < std::max(replicas, 1U); ++i) {
        credentials.push_back(session_credential(log_in, replicas));
        credentials.back().start(tasks);
        co_await sleep_for(std::chrono::seconds(50));  // they do not start together
      }
      co_await sleep_for(std::chrono::hours(3));
      EXPECT_GT(account.most, 0U);
      EXPECT_LT(account.most, 5U) << replicas;
      tasks.cancel();
      co_await tasks.join();
    });
  }
}

}  // namespace
}  // namespace gitops::reporter
