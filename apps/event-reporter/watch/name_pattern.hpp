#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gitops::reporter {

// Returns true when the name matches one of the patterns: '*' matches any text, '?' one character. A
// pattern between slashes is a regular expression (ECMAScript), of which the name must contain a
// match, as in Argo CD's application.namespaces; an invalid one matches nothing.
[[nodiscard]] bool matches_any(std::string_view name, const std::vector<std::string>& patterns);

// Returns the mistake in a pattern, in a few words; empty when it is valid.
[[nodiscard]] std::string pattern_mistake(const std::string& pattern);

}  // namespace gitops::reporter
