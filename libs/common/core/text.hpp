#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gitops {

// Returns the text without blanks, tabs and line ends on both sides.
std::string_view trimmed(std::string_view text);

// Returns the known name closest to a mistyped one: the first of those that need the fewest
// changes, if these are few for its length.
std::optional<std::string_view> nearest(std::string_view name,
                                        const std::vector<std::string_view>& known);

// Returns a number of bytes for people: "1 MiB", "512 KiB", "700 bytes". Never rounded.
std::string byte_count(std::uint64_t bytes);

// Returns the first `most` bytes, cut between characters, and "…" when something was left out.
std::string shortened(std::string_view text, std::size_t most);

std::string join(const std::vector<std::string>& items, std::string_view separator);

}  // namespace gitops
