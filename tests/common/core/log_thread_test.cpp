#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/log_capture.hpp"

namespace gitops {
namespace {

TEST(LogThreads, LinesOfSeveralThreadsStayWhole) {
  const test::LogCapture captured;
  const Log log("threads");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&log, i] {
        for (int n = 0; n < 100; ++n) log.info("line", {{"thread", i}, {"n", n}});
      });
    }
  }
  EXPECT_EQ(captured.lines().size(), 400U);
  EXPECT_EQ(captured.count(R"("logger":"threads","message":"line","thread":)"), 400U);
}

TEST(LogThreads, LevelAndSinkMayChangeWhileOthersWrite) {
  std::atomic<bool> stop = false;
  std::jthread writer([&stop] {
    const Log log("writer");
    while (!stop) log.debug("busy");
  });
  for (int i = 0; i < 50; ++i) {
    const test::LogCapture captured(i % 2 == 0 ? LogLevel::debug : LogLevel::error);
    Log("changer").error("mine");
    EXPECT_EQ(captured.count("mine"), 1U);
  }
  stop = true;
}

}  // namespace
}  // namespace gitops
