#pragma once

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "support/process.hpp"

// Checks of dashboards and alerts against the metrics that a daemon serves.
namespace gitops::test {

// The names of the samples of an exposition, each with its lines.
inline std::map<std::string, std::string> samples(const std::string& text) {
  std::map<std::string, std::string> found;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with('#')) found[line.substr(0, line.find_first_of("{ "))] += line + "\n";
  }
  return found;
}

// Mistakes in a PromQL expression: metrics that are not served, and labels that they do not have.
// Prometheus itself adds namespace and pod; the other labels that it adds differ by installation.
inline std::vector<std::string> mistakes(const std::string& expression,
                                         const std::map<std::string, std::string>& served) {
  static const std::regex metric(R"(\b((?:gitops|process)_\w+)(?:\{([^}]*)\})?)");
  static const std::regex matcher(R"re((\w+)(!?=~?)("[^"]*"))re");
  static const std::regex grouping(R"(\bby \(([^)]*)\))");
  static const std::regex name(R"(\w+)");
  const std::set<std::string> target_labels{"namespace", "pod"};
  std::vector<std::string> wrong;
  std::string lines;
  for (std::sregex_iterator it(expression.begin(), expression.end(), metric), end; it != end;
       ++it) {
    const auto sample = served.find((*it)[1]);
    if (sample == served.end()) {
      wrong.push_back("not served: " + it->str());
      continue;
    }
    lines += sample->second;
    const auto labels = (*it)[2].str();
    for (std::sregex_iterator one(labels.begin(), labels.end(), matcher); one != end; ++one) {
      const auto label = (*one)[1].str();
      if (target_labels.contains(label)) continue;
      const auto wanted = label + "=" + ((*one)[2] == "=" ? (*one)[3].str() : "\"");
      if (sample->second.find(wanted) == std::string::npos) {
        wrong.push_back("no " + wanted + ": " + it->str());
      }
    }
  }
  for (std::sregex_iterator it(expression.begin(), expression.end(), grouping), end; it != end;
       ++it) {
    const auto labels = (*it)[1].str();
    for (std::sregex_iterator one(labels.begin(), labels.end(), name); one != end; ++one) {
      if (target_labels.contains(one->str()) || lines.contains(one->str() + "=\"")) continue;
      wrong.push_back("no " + one->str() + ": " + it->str());
    }
  }
  return wrong;
}

// The expressions of the dashboard of the whole suite that ask for metrics whose name begins with `prefix`, by panel. A
// program's own test checks its part against what the program serves.
inline std::map<std::string, std::string> suite_expressions(const std::string& prefix) {
  const auto dashboard =
      nlohmann::json::parse(read_file(std::filesystem::path(GITOPS_SOURCE_DIR) /
                                      "charts/gitops-runtime/files/suite-dashboard.json"));
  std::map<std::string, std::string> found;
  for (const auto& panel : dashboard.at("panels")) {
    for (const auto& target : panel.at("targets")) {
      const std::string expression = target.at("expr");
      if (expression.contains(prefix)) found[panel.at("title")] += expression + "\n";
    }
  }
  return found;
}

// Expects that the program serves what these panels ask it for.
inline void expect_suite_panels(const std::string& prefix,
                                const std::map<std::string, std::string>& served) {
  const auto panels = suite_expressions(prefix);
  EXPECT_FALSE(panels.empty()) << prefix;
  for (const auto& [title, expressions] : panels) {
    EXPECT_THAT(mistakes(expressions, served), testing::IsEmpty()) << title;
  }
}

}  // namespace gitops::test
