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

// The parts of the daemon that the commands share.
struct AccountCommandOptions {
  // Adds the settings of the database's location, the same as the daemon's.
  std::function<void(ConfigReader&, store::Location&)> add_location;
  std::span<const store::Migration> migrations;
};

// The commands `control-plane user add|invite|list|password|disable|enable`, `control-plane key create|list|revoke` and
// `control-plane account add|list`. They work on the database itself, for installations without a web page. SQLite's
// file belongs to one process, so the daemon must be stopped meanwhile; PostgreSQL serves both.
std::vector<cli::Program> account_programs(const AccountCommandOptions& options);

// Runs the command in the arguments and returns its exit code; nothing when the first argument is none of these
// commands. `arguments` are those of the process, without its name.
std::optional<int> run_account_command(const AccountCommandOptions& options,
                                       const std::vector<std::string>& arguments,
                                       const cli::Environment& environment, cli::Console& console);

}  // namespace gitops::control_plane_server
