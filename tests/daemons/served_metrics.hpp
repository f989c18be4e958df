#pragma once

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

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
// Prometheus itself adds namespace, pod and service.
inline std::vector<std::string> mistakes(const std::string& expression,
                                         const std::map<std::string, std::string>& served) {
  static const std::regex metric(R"(\b((?:gitops|process)_\w+)(?:\{([^}]*)\})?)");
  static const std::regex matcher(R"re((\w+)(!?=~?)("[^"]*"))re");
  const std::set<std::string> target_labels{"namespace", "pod", "service"};
  std::vector<std::string> wrong;
  for (std::sregex_iterator it(expression.begin(), expression.end(), metric), end; it != end;
       ++it) {
    const auto sample = served.find((*it)[1]);
    if (sample == served.end()) {
      wrong.push_back("not served: " + it->str());
      continue;
    }
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
  return wrong;
}

}  // namespace gitops::test
