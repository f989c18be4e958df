#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "request-router/gate.hpp"

namespace gitops::router {
namespace {

constexpr int kThreads = 4;

void on_threads(const std::function<void()>& work) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
}

TEST(GateThreads, AC14_LimitsHoldAcrossLoopsExactly) {
  Gates gates({.rate = 50});
  const auto kept = gates.of("host");
  std::atomic<int> entered = 0;
  const auto now = Clock::time_point(std::chrono::hours(1));
  // Each loop asks for the gate itself.
  on_threads([&] {
    const auto gate = gates.of("host");
    for (int i = 0; i < 1'000; ++i) entered += gate->acquire(now) ? 1 : 0;
  });
  EXPECT_EQ(entered, 100);  // twice the rate at once
}

TEST(GateThreads, AC14_NeverMoreInsideThanAllowed) {
  Gates gates({.concurrency = 3});
  const auto kept = gates.of("host");
  std::atomic<int> inside = 0;
  std::atomic<int> entered = 0;
  on_threads([&] {
    for (int i = 0; i < 2'000; ++i) {
      const auto gate = gates.of("host");
      const auto permit = gate->acquire({});
      if (!permit) continue;
      EXPECT_LE(++inside, 3);
      ++entered;
      std::this_thread::yield();
      --inside;
    }
  });
  EXPECT_EQ(kept->inside(), 0);
  EXPECT_GT(entered, 0);
}

}  // namespace
}  // namespace gitops::router
