// The console: its modules by themselves, and its pages in a browser against the real program.
#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "support/browser.hpp"
#include "support/process.hpp"

namespace gitops::test {
namespace {

const std::filesystem::path kTests = std::filesystem::path(GITOPS_SOURCE_DIR) / "tests" / "console";
const std::filesystem::path kConsole =
    std::filesystem::path(GITOPS_SOURCE_DIR) / "apps" / "control-plane" / "console";

// Returns one line about what this machine lacks.
std::optional<std::string> missing_packages() {
  if (!find_program("node")) return "Node.js is not installed";
  for (const auto& folder : {kConsole, kTests}) {
    // Does nothing when the packages of the lock are there.
    const auto installed =
        run_command({"node", (kConsole / "install.mjs").string(), folder.string()});
    if (installed.exit_code != 0) {
      return "the npm packages of " + folder.string() +
             " are missing: " + installed.err.substr(0, installed.err.find('\n'));
    }
  }
  return std::nullopt;
}

constexpr int kSkipped = 77;  // exit code of a test whose program or browser is missing

void expect_success(const std::vector<std::string>& argv, const std::filesystem::path& folder,
                    std::chrono::seconds limit) {
  const auto result = run_command(argv, {}, {}, limit, folder);
  if (result.exit_code == kSkipped) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(Console, ItsTypesFit) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  expect_success({"node", "node_modules/typescript/bin/tsc", "--noEmit"}, kConsole,
                 std::chrono::seconds(120));
}

TEST(Console, ItsModulesDoWhatTheySay) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  expect_success({"node", "node_modules/vitest/vitest.mjs", "run"}, kTests,
                 std::chrono::seconds(180));
}

// Runs a file of browser/ against the real program, in Chromium.
void expect_in_browser(const std::string& file, std::chrono::seconds limit) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/" + file, std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, limit);
}

TEST(Console, ItsPagesWorkInABrowser) {
  expect_in_browser("pages.mjs", std::chrono::seconds(700));
}

TEST(Console, TheJournalOfAnApplicationWorksInABrowser) {
  expect_in_browser("journal.mjs", std::chrono::seconds(400));
}

TEST(Console, TheDiffOfAnApplicationWorksInABrowser) {
  expect_in_browser("diff.mjs", std::chrono::seconds(400));
}

TEST(Console, LogsOfAnApplicationWorkInABrowser) {
  expect_in_browser("logs.mjs", std::chrono::seconds(500));
}

TEST(Console, TheDocumentsAreInItsHelp) {
  expect_in_browser("help.mjs", std::chrono::seconds(400));
}

TEST(Console, FailuresHaveTheIdOfTheirRequestInABrowser) {
  expect_in_browser("failures.mjs", std::chrono::seconds(400));
}

TEST(Console, ItsActionsReachRuntimesFromABrowser) {
  expect_in_browser("actions.mjs", std::chrono::seconds(500));
}

TEST(Console, TheThreeWaysOfItsDocsHaveTheKeysThatTheySay) {
  expect_in_browser("ways.mjs", std::chrono::seconds(400));
}

TEST(Console, AC_38_TextsOfOthersStayTextsInABrowser) {
  expect_in_browser("attacks.mjs", std::chrono::seconds(400));
}

// It skips by itself where Firefox is missing.
TEST(Console, OneWayThroughItsPagesWorksInFirefox) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/firefox.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(400));
}

}  // namespace
}  // namespace gitops::test
