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
                                 .run = [](const Environment&, Console&) { return int{kDone}; },
                                 .old_name = "versions"}}};
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
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not known, 4 not found, 5 refused, 130 interrupted.
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
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not known, 4 not found, 5 refused, 130 interrupted.
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

TEST_F(CommandTest, AnEarlierNameWorksAndIsNotListed) {
  EXPECT_EQ(call({"versions"}).code, kDone);
  EXPECT_EQ(call({"versions", "--help"}).out, call({"version", "--help"}).out);
  EXPECT_EQ(call({"help"}).out.find("versions "), std::string::npos);
  EXPECT_EQ(call({""}).code, kWrongUsage);
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
  EXPECT_THAT(call({"completion", "ksh"}).err,
              HasSubstr("expected one argument: bash, zsh or fish"));
  EXPECT_THAT(call({"completion", "--help"}).out, HasSubstr("source <(sample completion bash)"));
  EXPECT_THAT(call({"help", "completion"}).out, HasSubstr("source <(sample completion bash)"));
  EXPECT_THAT(call({"completion", "bash"}).out, HasSubstr("complete -F _sample sample"));
  EXPECT_THAT(call({"completion", "zsh"}).out, HasSubstr("#compdef sample"));
  EXPECT_THAT(call({"completion", "fish"}).out, HasSubstr("complete -c sample -f"));
}

// A program whose commands have two words, and operands.
class GroupTest : public testing::Test {
 protected:
  int call(const std::vector<std::string>& arguments) {
    out_.str({});
    err_.str({});
    first_ = second_ = "";
    Console console{.out = out_, .err = err_};
    return run(program_, arguments, {}, console);
  }

  std::ostringstream out_;
  std::ostringstream err_;
  std::string first_;
  std::string second_;
  std::string flag_;
  bool wait_ = false;
  Program program_{
      .name = "sample",
      .summary = "Shows groups",
      .commands = {{.name = "check", .summary = "Check", .run = [](auto&, auto&) { return 7; }},
                   {.name = "app copy",
                    .summary = "Copy one",
                    .operands = {{.name = "FROM", .help = "Its name", .target = &first_},
                                 {.name = "TO",
                                  .help = "Another",
                                  .target = &second_,
                                  .is_required = false}},
                    .bind =
                        [this](ConfigReader& reader) {
                          reader.add({.flag = "flag", .help = "A flag", .letter = 'f'}, flag_);
                          reader.add({.flag = "wait", .help = "Wait", .letter = 'w'}, wait_);
                        },
                    .run = [](auto&, auto&) { return 8; }},
                   {.name = "app list", .summary = "List", .run = [](auto&, auto&) { return 9; }}},
      .groups = {{"app", "Applications"}},
      .names = {{"FROM", "app list"}}};
};

TEST_F(GroupTest, TwoWordsNameACommand) {
  EXPECT_EQ(call({"check"}), 7);
  EXPECT_EQ(call({"app", "list"}), 9);
  EXPECT_EQ(call({"app", "lst"}), kWrongUsage);
  EXPECT_EQ(err_.str(),
            "sample app: unknown command \"lst\", did you mean list?\n"
            "Run 'sample app --help' for usage.\n");
  EXPECT_EQ(call({"ap"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("did you mean app?"));
}

TEST_F(GroupTest, TheHelpHasALineForEachGroupAndEachGroupOneForItsCommands) {
  EXPECT_EQ(call({"help"}), kDone);
  EXPECT_THAT(out_.str(),
              HasSubstr("  check       Check\n  app         Applications\n  completion"));
  EXPECT_EQ(call({"app"}), kDone);
  const auto help = out_.str();
  EXPECT_THAT(help, HasSubstr("sample app: Applications\n\nUsage: sample app COMMAND [flags]\n\n"
                              "Commands:\n  copy  Copy one\n  list  List\n"));
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"help", "app"}, {"app", "--help"}, {"app", "-h"}}) {
    EXPECT_EQ(call(words), kDone);
    EXPECT_EQ(out_.str(), help);
  }
  EXPECT_EQ(call({"help", "app", "copy"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("Usage: sample app copy FROM [TO] [flags]\n\nArguments:\n"
                                    "  FROM  Its name\n  TO    Another\n"));
}

TEST_F(GroupTest, OperandsStandBetweenFlags) {
  EXPECT_EQ(call({"app", "copy", "-f", "x", "one", "--flag", "y", "-w", "two"}), kWrongUsage)
      << "a flag twice";
  EXPECT_EQ(call({"app", "copy", "-f", "x", "one", "-w", "two"}), 8);
  EXPECT_EQ(first_ + " " + second_ + " " + flag_, "one two x");
  EXPECT_TRUE(wait_);
  EXPECT_EQ(call({"app", "copy", "--flag=x", "one"}), 8);
  EXPECT_EQ(first_ + second_, "one");
}

TEST_F(GroupTest, MissingAndStrayOperandsAreMistakes) {
  EXPECT_EQ(call({"app", "copy"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("sample app copy: argument FROM: missing\n"));
  EXPECT_EQ(call({"app", "copy", "one", "two", "three"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("argument \"three\": not expected"));
}

}  // namespace
}  // namespace gitops::cli
