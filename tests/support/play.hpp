#pragma once

#include <exception>
#include <iostream>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/async.hpp"

namespace gitops::test {

// Runs `body(harness)`, then always `harness.stop()`. Prints harness.logs(), if it exists, to stderr when
// the body throws or the test has failed, including a failure in stop(). Rethrows an exception
// of the body.
template <class Harness, class Body>
Task<> play_in(Harness& harness, const Body& body) {
  std::exception_ptr thrown;
  try {
    co_await body(harness);
  } catch (...) {
    thrown = std::current_exception();
  }
  bool printed = false;
  const auto print_logs = [&] {
    if constexpr (requires { harness.logs(); }) {
      if (std::exchange(printed, true)) return;
      std::cerr << harness.logs();
    }
  };
  if (thrown || ::testing::Test::HasFailure()) print_logs();
  co_await harness.stop();
  if (::testing::Test::HasFailure()) print_logs();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace gitops::test
