// docs/reference/gitopsctl.md lists the commands and exit codes that there are. GITOPS_WRITE_DOCS=1 makes it so.
#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cli/command.hpp"
#include "gitopsctl/check.hpp"
#include "gitopsctl/program.hpp"
#include "support/docs_part.hpp"

namespace gitops::ctl {
namespace {

const std::filesystem::path kPage =
    std::filesystem::path(GITOPS_SOURCE_DIR) / "docs" / "reference" / "gitopsctl.md";

std::string help_of(const std::string& name) {
  std::ostringstream out;
  std::ostringstream err;
  cli::Console console{.out = out, .err = err};
  std::vector<std::string> words{"help"};
  std::istringstream parts(name);
  for (std::string word; parts >> word;) words.push_back(word);
  EXPECT_EQ(cli::run(gitopsctl(), words, {}, console), cli::kDone) << err.str();
  return out.str();
}

// Returns the row of a table for a command.
std::string row_of(const cli::Command& command) {
  std::string row = "| `" + command.name;
  for (const auto& operand : command.operands) {
    row += operand.is_required ? " " + operand.name : " [" + operand.name + "]";
  }
  const auto flags_of = [](const cli::Command& one) {
    ConfigReader reader("gitopsctl " + one.name, "", ProgramKind::command);
    if (one.bind) one.bind(reader);
    return reader.flags();
  };
  std::string flags;
  for (const auto& flag : flags_of(command)) {
    // diag has the flags of check.
    const auto is_of_check = [&] {
      const auto known = flags_of(check_command());
      return std::ranges::any_of(known, [&](const auto& one) { return one.name == flag.name; });
    };
    if (command.name == "diag" && is_of_check()) continue;
    // The flags of every command stand above the table.
    constexpr std::array<std::string_view, 10> kCommon = {"context",
                                                          "control-plane-url",
                                                          "control-plane-token-file",
                                                          "control-plane-ca-file",
                                                          "control-plane-insecure",
                                                          "timeout",
                                                          "verbose",
                                                          "config",
                                                          "help",
                                                          "output"};
    if (std::ranges::find(kCommon, flag.name) != kCommon.end()) continue;
    flags += flags.empty() ? "" : " ";
    flags += "`--" + flag.name + '`';
  }
  return row + "` | " + command.summary + " | " + flags + " |\n";
}

TEST(Reference, ThePageHasEveryCommandOfAControlPlane) {
  std::string table = "| Command | Does | Flags of its own |\n|---|---|---|\n";
  for (const auto& command : gitopsctl().commands) {
    if (command.description.contains("Examples:")) table += row_of(command);
  }
  test::expect_docs_part(kPage, "commands", table);
}

TEST(Reference, EveryCommandExplainsItselfWithExamples) {
  for (const auto& command : gitopsctl().commands) {
    const bool is_older = command.name == "check" || command.name == "version";
    if (is_older) continue;
    const auto help = help_of(command.name);
    EXPECT_THAT(help, testing::HasSubstr("\n\nUsage: gitopsctl " + command.name)) << command.name;
    EXPECT_THAT(help, testing::HasSubstr("Examples:\n  gitopsctl ")) << command.name;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 100U) << command.name << ": " << line;
    }
  }
}

TEST(Reference, EveryGroupIsExplained) {
  const auto program = gitopsctl();
  for (const auto& command : program.commands) {
    const auto blank = command.name.find(' ');
    if (blank == std::string::npos) continue;
    EXPECT_EQ(program.groups.count(command.name.substr(0, blank)), 1U) << command.name;
  }
}

TEST(Reference, NamesAreCompletedByCommandsThatThereAre) {
  const auto program = gitopsctl();
  for (const auto& [operand, printer] : program.names) {
    const auto known = std::ranges::any_of(program.commands, [&](const cli::Command& command) {
      return printer.starts_with(command.name + " -o name");
    });
    EXPECT_TRUE(known) << operand << ": " << printer;
    const auto used = std::ranges::any_of(program.commands, [&](const cli::Command& command) {
      return std::ranges::any_of(command.operands,
                                 [&](const cli::Operand& one) { return one.name == operand; });
    });
    EXPECT_TRUE(used) << operand;
  }
}

}  // namespace
}  // namespace gitops::ctl
