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
    if (std::filesystem::exists(folder / "node_modules" / ".installed")) continue;
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

TEST(Console, ItsPagesWorkInABrowser) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/pages.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(400));
}

TEST(Console, TheJournalOfAnApplicationWorksInABrowser) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/journal.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(200));
}

TEST(Console, TheDiffOfAnApplicationWorksInABrowser) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/diff.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(200));
}

TEST(Console, TheThreeWaysOfItsDocsHaveTheKeysThatTheySay) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/ways.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(200));
}

TEST(Console, LogsOfAnApplicationWorkInABrowser) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/logs.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(300));
}

TEST(Console, AC_38_TextsOfOthersStayTextsInABrowser) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/attacks.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(400));
}

// It skips by itself where Firefox is missing.
TEST(Console, OneWayThroughItsPagesWorksInFirefox) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/firefox.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(200));
}

TEST(Console, ItsActionsReachRuntimesFromABrowser) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  expect_success({"node", "browser/actions.mjs", std::string(GITOPS_BIN_DIR) + "/control-plane"},
                 kTests, std::chrono::seconds(300));
}

}  // namespace
}  // namespace gitops::test
