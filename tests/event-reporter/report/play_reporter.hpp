#pragma once

#include <exception>
#include <functional>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/report/reporter_fixture.hpp"
#include "event-reporter/shards/shard.hpp"
#include "support/log_capture.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"

namespace gitops::reporter {

// Runs a test's body with a scene around it, and always stops the scene.
inline void play(ReporterFixture::Options options,
                 const std::function<Task<>(ReporterFixture&)>& body) {
  const test::LogCapture quiet;
  test::run_in_test_time(
      [&]() -> Task<> {
        ReporterFixture fixture(co_await asio::this_coro::executor, options);
        fixture.log = &quiet;
        std::exception_ptr failure;
        try {
          co_await body(fixture);
        } catch (...) {
          failure = std::current_exception();
        }
        co_await fixture.stop();
        EXPECT_THAT(fixture.platform.refused(), ::testing::IsEmpty());
        if (failure) std::rethrow_exception(failure);
      },
      std::chrono::seconds(20));
  if (::testing::Test::HasFailure()) std::cerr << quiet.text() << "\n";
}

inline void play(const std::function<Task<>(ReporterFixture&)>& body) {
  play(ReporterFixture::fast_options(), body);
}

inline ReporterFixture::Options with_ledger(const test::TempDir& folder) {
  auto options = ReporterFixture::fast_options();
  options.ledger.path = (folder / "ledger.db").string();
  return options;
}

// app-0 belongs to shard 2 of 3, app-1 to 0, app-2 to 1.
inline ReporterFixture::Options of_three(std::uint32_t shard) {
  auto options = ReporterFixture::fast_options();
  options.reporter.changes.replicas = 3;
  options.ledger_group = [](std::string_view key) { return group_of_key(key, 3); };
  options.shard = shard;
  return options;
}

}  // namespace gitops::reporter
