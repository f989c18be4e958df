#include "app-proxy/users/attempts.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;

TEST(Attempts, EachAddressHasSome) {
  Attempts attempts({.burst = 3, .period = 1s});
  const Clock::time_point start{1h};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(attempts.wait_of("a", start), 0s) << i;
    attempts.failed("a", start);
  }
  EXPECT_EQ(attempts.wait_of("a", start), 1s);
  EXPECT_EQ(attempts.wait_of("b", start), 0s);
  EXPECT_EQ(attempts.wait_of("a", start + 1s), 0s);
  attempts.failed("a", start + 1s);
  EXPECT_EQ(attempts.wait_of("a", start + 1s), 1s);
  // All of them again.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(attempts.wait_of("a", start + 1h), 0s) << i;
    attempts.failed("a", start + 1h);
  }
  EXPECT_GT(attempts.wait_of("a", start + 1h), 0s);
}

TEST(Attempts, RememberSoManyAddresses) {
  Attempts attempts({.burst = 1, .period = 1h, .max_addresses = 2});
  const Clock::time_point now{1h};
  attempts.failed("a", now);
  attempts.failed("b", now);
  attempts.failed("a", now);
  attempts.failed("c", now);  // b failed longest ago
  EXPECT_EQ(attempts.addresses(), 2U);
  EXPECT_GT(attempts.wait_of("a", now), 0s);
  EXPECT_EQ(attempts.wait_of("b", now), 0s);
  EXPECT_GT(attempts.wait_of("c", now), 0s);
}

}  // namespace
}  // namespace gitops::app_proxy
