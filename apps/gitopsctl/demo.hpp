#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/cli/command.hpp"

namespace gitops::ctl {

// `gitopsctl demo`: becomes the program gitops-demo of a release, which plays the demo on this
// machine.
cli::Command demo_command();

// Returns the path of gitops-demo: in `own_folder`, in the archive of all programs of this version
// unpacked beside it, or in `search_path`, folders with colons between them.
std::optional<std::filesystem::path> find_demo(const std::filesystem::path& own_folder,
                                               std::string_view search_path);

}  // namespace gitops::ctl
