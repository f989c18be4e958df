// The console: its modules by themselves, and its pages in a browser against the real program.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "console/node_program.hpp"

namespace gitops::test {
namespace {

TEST(Console, ItsTypesFit) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  expect_success({"node", "node_modules/typescript/bin/tsc", "--noEmit"}, console_sources(),
                 std::chrono::seconds(120));
}

TEST(Console, ItsModulesDoWhatTheySay) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  expect_success({"node", "node_modules/vitest/vitest.mjs", "run"}, console_tests(),
                 std::chrono::seconds(180));
}

void expect_in_browser(const std::string& file, std::chrono::seconds limit) {
  expect_in_chromium(file, {std::string(GITOPS_BIN_DIR) + "/control-plane"}, limit);
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
                 console_tests(), std::chrono::seconds(400));
}

}  // namespace
}  // namespace gitops::test
