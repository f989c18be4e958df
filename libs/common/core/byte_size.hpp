#pragma once

#include <cstdint>
#include <string_view>

#include "common/core/config_reader.hpp"
#include "common/core/error.hpp"

namespace gitops {

// Parses a number of bytes: "1048576", "25Mi", "1Gi", "100M". The error's message describes the
// mistake.
Result<std::int64_t> parse_size(std::string_view text);

// Adds a setting of that form; the target holds its default.
void add_size(ConfigReader& reader, SettingNames names, std::int64_t& target);

}  // namespace gitops
