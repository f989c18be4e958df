#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/cli/command.hpp"
#include "common/core/config_reader.hpp"
#include "common/store/connection.hpp"
#include "common/store/migration.hpp"

namespace gitops::control_plane_server {

// The parts of the daemon that the command uses.
struct CopyCommandOptions {
  // Adds the settings that say where the database is: the same ones as the daemon's.
  std::function<void(ConfigReader&, store::Location&)> add_location;
  std::span<const store::Migration> migrations;
};

// The database that `--to` names: an address "postgresql://…", or the path of a file of SQLite.
store::Location location_of(const std::string& to);

// Runs `control-plane copy --to …` and returns its exit code; nothing when the first argument is another word. The
// daemon must be stopped meanwhile.
std::optional<int> run_copy_command(const CopyCommandOptions& options,
                                    const std::vector<std::string>& arguments,
                                    const cli::Environment& environment, cli::Console& console);

}  // namespace gitops::control_plane_server
