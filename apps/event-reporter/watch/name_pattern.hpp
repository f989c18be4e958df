#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gitops::reporter {

// True when the name matches one of the patterns: '*' matches any text, '?' one character.
[[nodiscard]] bool matches_any(std::string_view name, const std::vector<std::string>& patterns);

}  // namespace gitops::reporter
