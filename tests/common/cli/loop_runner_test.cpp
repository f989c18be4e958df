#include "common/cli/loop_runner.hpp"

#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::cli {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr seconds kTimeLimit(20);  // long, since a loaded machine may be slow

std::vector<std::string> command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(GITOPS_BIN_DIR) + "/test_cli");
  return arguments;
}

// A command that runs until a signal ends it.
class Running {
 public:
  explicit Running(std::vector<std::string> arguments)
      : process_({.argv = command(std::move(arguments)), .log_file = folder_ / "out"}) {
    test::require_until([&] { return out().contains("waiting"); }, kTimeLimit, "the command");
  }
  // The exit code after this signal; -1 when the program does not end.
  int end_by(int number) {
    process_.signal(number);
    return process_.wait(kTimeLimit).value_or(-1);
  }
  std::string out() { return test::read_file(folder_ / "out"); }

 private:
  test::TempDir folder_;
  test::Process process_;
};

TEST(LoopRunner, InterruptEndsTheWorkAtOnce) {
  Running running({"wait", "--timeout=24h"});
  EXPECT_EQ(running.end_by(SIGINT), kInterrupted);
  EXPECT_EQ(running.out(), "waiting\n");
}

TEST(LoopRunner, TerminationHasItsOwnExitCode) {
  EXPECT_EQ(Running({"wait"}).end_by(SIGTERM), kTerminated);
}

TEST(LoopRunner, WorkThatIgnoresItsCancellationEndsWithTheProcess) {
  EXPECT_EQ(Running({"ignore"}).end_by(SIGINT), kInterrupted);
}

TEST(LoopRunner, WorkThatOverrunsItsDeadlineIsNotKnown) {
  const auto result = test::run_command(command({"wait", "--timeout=1ms"}));
  EXPECT_EQ(result.exit_code, kNotKnown);
  EXPECT_EQ(result.err, "not done within 1ms; --timeout gives it more time\n");
}

TEST(LoopRunner, WorkThatKeepsToItsDeadlineDecidesTheExitCode) {
  const auto result = test::run_command(command({"deadline", "--timeout=1ms"}));
  EXPECT_EQ(result.exit_code, kNotKnown);
  EXPECT_EQ(result.out, "in time\n");
  EXPECT_EQ(result.err, "");
}

TEST(LoopRunner, ABlockedPoolDoesNotHoldTheEnd) {
  const auto result = test::run_command(command({"block"}));
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.out, "not waiting\n");
}

TEST(LoopRunner, LogLinesAreWrittenOnlyOnRequest) {
  EXPECT_EQ(test::run_command(command({"log"})).err, "");
  EXPECT_THAT(test::run_command(command({"log", "-v"})).err, HasSubstr("a log line"));
}

TEST(LoopRunner, AnEscapedExceptionIsNamed) {
  const auto result = test::run_command(command({"bug"}));
  EXPECT_EQ(result.exit_code, kFailed);
  EXPECT_THAT(result.err, StartsWith("failed unexpectedly: a bug\n"));
}

TEST(LoopRunner, StandardOutputThatCannotBeWrittenIsAFailure) {
  const auto result =
      test::run_command({"sh", "-c", "exec \"$0\" --help >/dev/full", GITOPS_BIN_DIR "/test_cli"});
  EXPECT_EQ(result.exit_code, kFailed);
  EXPECT_EQ(result.err, "test-cli: standard output: No space left on device\n");
}

// More than the buffer of the output holds, so that an earlier write has failed.
TEST(LoopRunner, AMessageAboutStandardOutputNamesNoSuccess) {
  const auto result = test::run_command(
      {"sh", "-c", "exec \"$0\" completion bash >/dev/full", GITOPS_BIN_DIR "/test_cli"});
  EXPECT_EQ(result.exit_code, kFailed);
  EXPECT_THAT(result.err, StartsWith("test-cli: standard output: "));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("Success")));
}

TEST(LoopRunner, ACommandThatGoesOnEndsWhenNobodyReadsIt) {
  const auto result = test::run_command(
      {"bash", "-c", "timeout 30 \"$0\" lines --timeout=1h | head -n 1; echo \"${PIPESTATUS[0]}\"",
       GITOPS_BIN_DIR "/test_cli"});
  EXPECT_EQ(result.out, "a line\n1\n");
  EXPECT_EQ(result.err, "");
}

TEST(LoopRunner, AReaderThatLeftIsNotWorthAMessage) {
  const auto result =
      test::run_command({"bash", "-c", "exec 3> >(exec true); wait $!; exec \"$0\" --help >&3",
                         GITOPS_BIN_DIR "/test_cli"});
  EXPECT_EQ(result.exit_code, kFailed);
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace gitops::cli
