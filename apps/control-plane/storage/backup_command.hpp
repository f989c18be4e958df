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

// The parts of the daemon that the commands use.
struct BackupCommandOptions {
  // Adds the settings that say where the database is: the same ones as the daemon's.
  std::function<void(ConfigReader&, store::Location&)> add_location;
  std::span<const store::Migration> migrations;
};

// Runs `control-plane backup --to FILE`, while the daemon runs or not, or `control-plane restore --from FILE`, while it
// is stopped. Both are of SQLite; PostgreSQL has its own programs. Returns the exit code; nothing when the first
// argument is another word.
std::optional<int> run_backup_command(const BackupCommandOptions& options,
                                      const std::vector<std::string>& arguments,
                                      const cli::Environment& environment, cli::Console& console);

}  // namespace gitops::control_plane_server
