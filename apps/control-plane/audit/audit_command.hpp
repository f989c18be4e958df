#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/cli/command.hpp"
#include "common/core/config_reader.hpp"
#include "common/store/connection.hpp"

namespace gitops::control_plane_server {

// Runs `control-plane audit verify`, which reads beside a running daemon, and returns its exit code; nothing when the
// first argument is another word. `add_location` adds the settings that say where the database is: the daemon's.
using AddLocation = std::function<void(ConfigReader&, store::Location&)>;
std::optional<int> run_audit_command(const AddLocation& add_location,
                                     const std::vector<std::string>& arguments,
                                     const cli::Environment& environment, cli::Console& console);

}  // namespace gitops::control_plane_server
