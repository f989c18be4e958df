#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/browser.hpp"
#include "support/process.hpp"

namespace gitops::test {

inline std::filesystem::path console_tests() {
  return std::filesystem::path(GITOPS_SOURCE_DIR) / "tests" / "console";
}

inline std::filesystem::path console_sources() {
  return std::filesystem::path(GITOPS_SOURCE_DIR) / "apps" / "control-plane" / "console";
}

// Installs the npm packages of the console and of its tests, unless those of the locks are there.
// Returns one line about what this machine lacks.
inline std::optional<std::string> missing_packages() {
  if (!find_program("node")) return "Node.js is not installed";
  for (const auto& folder : {console_sources(), console_tests()}) {
    const auto installed =
        run_command({"node", (console_sources() / "install.mjs").string(), folder.string()});
    if (installed.exit_code != 0) {
      return "the npm packages of " + folder.string() +
             " are missing: " + installed.err.substr(0, installed.err.find('\n'));
    }
  }
  return std::nullopt;
}

// Fails the test unless the command ends with 0; 77 skips it, as a program or browser is missing.
inline void expect_success(const std::vector<std::string>& argv,
                           const std::filesystem::path& folder, std::chrono::seconds limit) {
  constexpr int kSkipped = 77;
  const auto result = run_command(argv, {}, {}, limit, folder);
  if (result.exit_code == kSkipped) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// Runs a file of browser/ with these arguments, in Chromium.
inline void expect_in_chromium(const std::string& file, const std::vector<std::string>& arguments,
                               std::chrono::seconds limit) {
  if (const auto lacking = missing_packages()) GTEST_SKIP() << *lacking;
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  std::vector<std::string> argv{"node", "browser/" + file};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  expect_success(argv, console_tests(), limit);
}

}  // namespace gitops::test
