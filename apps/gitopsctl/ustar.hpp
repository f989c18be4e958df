#pragma once

#include <string>
#include <string_view>

#include "common/core/time.hpp"

// Archives in the ustar format (POSIX.1-2024, pax, "ustar Interchange Format"). Pure.
namespace gitops::ctl {

// Returns whether the format can hold a file of this path: at most 255 bytes, of which the last 100 begin at a slash.
bool fits_ustar(std::string_view path);

// Appends a regular file with mode 0600. `path` fits_ustar(), else std::invalid_argument is thrown.
void append_file(std::string& archive, std::string_view path, std::string_view content,
                 WallTime changed);
// Appends the end of the archive.
void append_end(std::string& archive);

}  // namespace gitops::ctl
