#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "support/log_capture.hpp"

namespace gitops {
namespace {

using nlohmann::json;

// A pipe that stands in for standard error. It fills up until read_lines() reads it.
class Pipe {
 public:
  explicit Pipe(int flags = 0) {
    flush_logging();
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(ends_[1], F_SETFL, flags), 0);
    EXPECT_GE(::dup2(ends_[1], STDERR_FILENO), 0);
    ::close(ends_[1]);
  }
  ~Pipe() {
    restore();
    ::close(kept_);
    if (ends_[0] >= 0) ::close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // Reads until all lines so far are written; standard error is what it was afterwards.
  std::vector<std::string> read_lines() {
    std::jthread writer([this] {
      flush_logging();
      restore();  // the end of the pipe
    });
    std::vector<std::string> lines(1);
    std::string block(4'096, '\0');
    for (ssize_t size = 0; (size = ::read(ends_[0], block.data(), block.size())) > 0;) {
      for (const char c : block.substr(0, static_cast<std::size_t>(size))) {
        if (c == '\n') {
          lines.emplace_back();
        } else {
          lines.back() += c;
        }
      }
    }
    EXPECT_EQ(lines.back(), "") << "a line without an end";
    lines.pop_back();
    return lines;
  }
  void close_reader() {
    ::close(ends_[0]);
    ends_[0] = -1;
  }
  void restore() { EXPECT_GE(::dup2(kept_, STDERR_FILENO), 0); }

 private:
  const int kept_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  std::array<int, 2> ends_{};
};

constexpr int kThreads = 4;
constexpr int kLines = 2'500;  // of each thread

void log_in_threads() {
  const Log log("threads");
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&log, i] {
      for (int n = 0; n < kLines; ++n) log.info("line", {{"thread", i}, {"n", n}});
    });
  }
}

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

TEST(LogThreads, AReaderThatNeverReadsHoldsNoCallerUp) {
  const auto before = log_lines_dropped();
  Pipe pipe;
  log_in_threads();  // ends while the pipe is full
  const auto lost = log_lines_dropped() - before;
  EXPECT_GT(lost, 0U);
  EXPECT_LT(lost, std::uint64_t{kThreads * kLines});

  std::size_t whole = 0;
  std::uint64_t told = 0;
  std::map<int, int> last;
  for (const auto& line : pipe.read_lines()) {
    const json parsed = json::parse(line, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << line;
    if (parsed.at("logger") == "log") {
      EXPECT_EQ(parsed.at("message"), "log lines are lost; standard error did not take them");
      told += parsed.at("lines").get<std::uint64_t>();
      continue;
    }
    ++whole;
    const int n = parsed.at("n");
    const auto [entry, is_first] = last.try_emplace(parsed.at("thread"), n);
    EXPECT_TRUE(is_first || entry->second < n) << "lines of a thread stay in order";
    entry->second = n;
  }
  EXPECT_EQ(told, lost);
  EXPECT_EQ(whole + lost, std::size_t{kThreads * kLines});
  EXPECT_TRUE(std::ranges::any_of(last, [](const auto& of) { return of.second == kLines - 1; }))
      << "the newest lines are kept";
}

TEST(LogThreads, ADescriptorThatDoesNotBlockIsWaitedFor) {
  Pipe pipe(O_NONBLOCK);
  const Log log("threads");
  for (int n = 0; n < 30; ++n) log.info(std::string(7'000, 'x'), {{"n", n}});
  const auto lines = pipe.read_lines();
  ASSERT_EQ(lines.size(), 30U);
  for (int n = 0; n < 30; ++n) EXPECT_EQ(json::parse(lines[static_cast<std::size_t>(n)])["n"], n);
}

TEST(LogThreads, LinesThatStandardErrorRefusesAreCountedAndToldLater) {
  const auto before = log_lines_dropped();
  {
    Pipe pipe;
    std::signal(SIGPIPE, SIG_IGN);  // as in every program
    pipe.close_reader();
    Log("threads").info("nobody reads");
    Log("threads").info("nor this");
    flush_logging();
    pipe.restore();
  }
  EXPECT_EQ(log_lines_dropped() - before, 2U);
  Pipe pipe;
  Log("threads").info("read");
  const auto lines = pipe.read_lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(json::parse(lines[0])["lines"], 2);
  EXPECT_EQ(json::parse(lines[1])["message"], "read");
}

TEST(LogThreads, RawLinesGoThroughTheSameQueueWhateverTheLevel) {
  Pipe pipe;
  configure_logging(LogLevel::off, LogFormat::json);
  Log("threads").error("not written");
  log_raw_line("as it is");
  configure_logging(LogLevel::info, LogFormat::json);
  Log("threads").info("after it");
  const auto lines = pipe.read_lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "as it is");
  EXPECT_EQ(json::parse(lines[1])["message"], "after it");
}

}  // namespace
}  // namespace gitops
