#pragma once

#include <exception>
#include <iostream>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/async.hpp"

namespace gitops::test {

// Runs `body(world)`, then always `world.stop()`. Prints world.logs(), if it exists, to stderr when
// the body throws or the test has failed, including a failure in stop(). Rethrows an exception
// of the body.
template <class World, class Body>
Task<> play_in(World& world, const Body& body) {
  std::exception_ptr thrown;
  try {
    co_await body(world);
  } catch (...) {
    thrown = std::current_exception();
  }
  bool printed = false;
  const auto print_logs = [&] {
    if constexpr (requires { world.logs(); }) {
      if (std::exchange(printed, true)) return;
      std::cerr << world.logs();
    }
  };
  if (thrown || ::testing::Test::HasFailure()) print_logs();
  co_await world.stop();
  if (::testing::Test::HasFailure()) print_logs();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace gitops::test
