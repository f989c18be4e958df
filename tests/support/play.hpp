#pragma once

#include <exception>
#include <iostream>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/async.hpp"

namespace gitops::test {

// Runs `body(world)` and then `world.stop()`, whatever the body did. A world with logs() has them
// printed to stderr when the body threw or the test has failed, in stop() at the latest. An
// exception of the body is thrown on.
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
