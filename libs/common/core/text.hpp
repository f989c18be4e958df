#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gitops {

// Without blanks, tabs and line ends on both sides.
std::string_view trimmed(std::string_view text);

std::string join(const std::vector<std::string>& items, std::string_view separator);

}  // namespace gitops
