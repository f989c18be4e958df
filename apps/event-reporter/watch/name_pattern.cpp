#include "event-reporter/watch/name_pattern.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <regex>

namespace gitops::reporter {
namespace {

bool is_expression(std::string_view pattern) {
  return pattern.size() > 2 && pattern.starts_with('/') && pattern.ends_with('/');
}

// Returns the expression between the slashes, compiled once in each thread; nullopt: it is not
// valid. The patterns come from the configuration, so there are few.
const std::optional<std::regex>& expression(const std::string& pattern) {
  thread_local std::map<std::string, std::optional<std::regex>> compiled;
  const auto found = compiled.find(pattern);
  if (found != compiled.end()) return found->second;
  auto& made = compiled[pattern];
  try {
    made.emplace(pattern.substr(1, pattern.size() - 2), std::regex::nosubs | std::regex::optimize);
  } catch (const std::regex_error&) {
    made.reset();
  }
  return made;
}

bool matches(std::string_view name, const std::string& pattern) {
  if (is_expression(pattern)) {
    const auto& compiled = expression(pattern);
    return compiled && std::regex_search(name.begin(), name.end(), *compiled);
  }
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_at = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      star_at = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == name[at])) {
      ++at;
      ++in_pattern;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++star_at;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

}  // namespace

bool matches_any(std::string_view name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns,
                             [name](const std::string& pattern) { return matches(name, pattern); });
}

std::string pattern_mistake(const std::string& pattern) {
  if (is_expression(pattern)) {
    return expression(pattern) ? "" : "\"" + pattern + "\" is not a valid regular expression";
  }
  if (pattern.find_first_of("/[]{}^$ ") == std::string::npos) return {};
  return "\"" + pattern +
         "\" is not a namespace pattern of letters, digits, '-', '*' and '?', or a regular "
         "expression "
         "between slashes";
}

}  // namespace gitops::reporter
