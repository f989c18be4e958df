#include "common/cli/command.hpp"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/process.hpp"

namespace gitops::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CommandTest : public testing::Test {
 protected:
  struct Result {
    int code;
    std::string out, err;
  };
  Result call(const std::vector<std::string>& arguments, const Environment& environment = {}) {
    std::ostringstream out;
    std::ostringstream err;
    Console console{.out = out, .err = err};
    const int code = run(program_, arguments, environment, console);
    return {code, out.str(), err.str()};
  }

  std::string server_ = "localhost";
  int runs_ = 0;
  Program program_{.name = "sample",
                   .summary = "Shows what commands are",
                   .commands = {{.name = "check",
                                 .summary = "Look whether all is well",
                                 .description = "Asks the server how it is.\n",
                                 .bind =
                                     [this](ConfigReader& reader) {
                                       reader.group("Server");
                                       reader.add({.flag = "server",
                                                   .env = {"SAMPLE_SERVER"},
                                                   .help = "Server to ask",
                                                   .letter = 's'},
                                                  server_);
                                     },
                                 .run =
                                     [this](const Environment&, Console& console) {
                                       ++runs_;
                                       console.out << "asked " << server_ << '\n';
                                       return int{kFailed};
                                     }},
                                {.name = "version",
                                 .summary = "Print versions",
                                 .run = [](const Environment&, Console&) { return int{kDone}; }}}};
};

constexpr const char* kHelp = R"(sample: Shows what commands are

Usage: sample COMMAND [flags]

Commands:
  check       Look whether all is well
  version     Print versions
  completion  Print the completion script of a shell
  help        Explain a command

Flags:
  --help     Print this text, and end
  --version  Print the version, and end

For more about a command: sample help COMMAND
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not known, 130 interrupted.
)";

TEST_F(CommandTest, WithoutACommandTheHelpListsThem) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"--help"}, {"-h"}, {"help"}, {"help", "help"}}) {
    const auto result = call(arguments);
    EXPECT_EQ(result.code, kDone);
    EXPECT_EQ(result.out, kHelp);
    EXPECT_EQ(result.err, "");
  }
}

TEST_F(CommandTest, EachCommandHasItsOwnHelp) {
  const auto result = call({"check", "--help", "--server"});
  EXPECT_EQ(result.code, kDone);
  EXPECT_EQ(result.out, R"(sample check: Look whether all is well

Usage: sample check [flags]

Asks the server how it is.

Server:
  -s, --server TEXT  Server to ask (env SAMPLE_SERVER; default localhost)

Common:
  --config FILE      YAML file with settings, named as the flags (env GITOPS_CONFIG)
  --help             Print this text, and end

A flag wins over the environment, the environment over the file, the file over the default.
Flags that take no value are switched off by --no-NAME. Durations: 300ms, 10s, 1m30s, 24h.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not known, 130 interrupted.
)");
  EXPECT_EQ(call({"help", "check"}).out, result.out);
  EXPECT_EQ(call({"check", "-h"}).out, result.out);
  EXPECT_EQ(runs_, 0);
}

TEST_F(CommandTest, ACommandRunsWithItsSettingsAndDecidesTheExitCode) {
  EXPECT_EQ(call({"check"}).out, "asked localhost\n");
  EXPECT_EQ(call({"check"}, {{"SAMPLE_SERVER", "env"}}).out, "asked env\n");
  const auto result = call({"check", "-s", "flag"}, {{"SAMPLE_SERVER", "env"}});
  EXPECT_EQ(result.out, "asked flag\n");
  EXPECT_EQ(result.code, kFailed);
}

TEST_F(CommandTest, TheVersionIsThatOfTheSuite) {
  EXPECT_EQ(call({"--version"}).out, "sample " + std::string(version()) + "\n");
}

TEST_F(CommandTest, AnUnknownCommandIsAnsweredWithTheNearest) {
  const auto result = call({"chekc", "-s", "x"});
  EXPECT_EQ(result.code, kWrongUsage);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "sample: unknown command \"chekc\", did you mean check?\n"
            "Run 'sample --help' for usage.\n");
  EXPECT_EQ(call({"help", "nothing-like-it"}).err,
            "sample: unknown command \"nothing-like-it\"\nRun 'sample --help' for usage.\n");
}

TEST_F(CommandTest, AllWrongFlagsAreNamedAndNothingRuns) {
  const auto result = call({"check", "--servr=x", "stray"});
  EXPECT_EQ(result.code, kWrongUsage);
  EXPECT_EQ(result.err,
            "sample check: flag \"--servr\": unknown, did you mean --server?\n"
            "sample check: argument \"stray\": not expected, settings are given as --name=value\n"
            "Run 'sample check --help' for usage.\n");
  EXPECT_EQ(runs_, 0);
}

TEST_F(CommandTest, FlagsBeforeTheCommandAreExplained) {
  const auto result = call({"--server=x", "check"});
  EXPECT_EQ(result.code, kWrongUsage);
  EXPECT_THAT(result.err, HasSubstr("flag \"--server\" comes before the command"));
}

TEST_F(CommandTest, CompletionWantsAShell) {
  EXPECT_EQ(call({"completion"}).code, kWrongUsage);
  EXPECT_THAT(call({"completion", "fish"}).err, HasSubstr("expected one argument: bash or zsh"));
  EXPECT_THAT(call({"completion", "--help"}).out, HasSubstr("source <(sample completion bash)"));
  EXPECT_THAT(call({"help", "completion"}).out, HasSubstr("source <(sample completion bash)"));
  EXPECT_THAT(call({"completion", "bash"}).out, HasSubstr("complete -F _sample sample"));
  EXPECT_THAT(call({"completion", "zsh"}).out, HasSubstr("#compdef sample"));
}

}  // namespace
}  // namespace gitops::cli
