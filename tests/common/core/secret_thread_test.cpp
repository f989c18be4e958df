#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "support/run_coro.hpp"
#include "support/run_on.hpp"

namespace gitops {
namespace {

TEST(SecretThreads, ACopyGoesToThePoolWhileTheOriginalIsReplaced) {
  asio::thread_pool pool(2);
  test::run_coro([&pool]() -> Task<> {
    Secret current("generation-0");
    for (int i = 1; i <= 50; ++i) {
      const std::string expected(current.reveal());
      auto used = test::run_on(pool, [copy = current] { return std::string(copy.reveal()); });
      current = Secret("generation-" + std::to_string(i));
      EXPECT_EQ(co_await std::move(used), expected);
    }
  });
}

TEST(SecretThreads, OneSecretIsReadByMany) {
  const Secret shared("the same for all");
  std::vector<std::jthread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&shared] {
      for (int n = 0; n < 100; ++n) EXPECT_TRUE(shared == Secret("the same for all"));
    });
  }
}

}  // namespace
}  // namespace gitops
