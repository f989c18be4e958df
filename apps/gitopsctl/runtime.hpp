#pragma once

#include <vector>

#include "common/cli/command.hpp"
#include "gitopsctl/sheet.hpp"

namespace gitops::ctl {

// `gitopsctl runtime list|status|add|remove`.
std::vector<cli::Command> runtime_commands();

// Returns the command that adds a runtime; docs/install.md explains it, and the console shows the same one.
std::string install_command(std::string_view url, std::string_view name);

}  // namespace gitops::ctl
