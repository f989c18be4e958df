#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::ctl {

// Creates a file that nobody else may read (mode 0600) with this content. It follows no symbolic link. Errors:
// `conflict` when there is something at the path, `unavailable` when it cannot be written.
Result<void> create_private_file(const std::string& path, std::string_view content);

}  // namespace gitops::ctl
