#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::reporter {

// One case of tests/golden: the inputs of a report, and the events expected from them.
inline nlohmann::json golden_case(const std::string& name) {
  std::ifstream file(std::filesystem::path(GITOPS_SOURCE_DIR) / "tests/golden" / (name + ".json"));
  EXPECT_TRUE(file) << name;
  return nlohmann::json::parse(file);
}

}  // namespace gitops::reporter
