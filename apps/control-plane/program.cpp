#include "control-plane/program.hpp"

#include <iostream>
#include <string>
#include <vector>

#include "common/core/process.hpp"
#include "common/daemon/daemon.hpp"
#include "control-plane/accounts/user_command.hpp"
#include "control-plane/app.hpp"
#include "control-plane/audit/audit_command.hpp"
#include "control-plane/config.hpp"
#include "control-plane/storage/backup_command.hpp"
#include "control-plane/storage/copy_command.hpp"
#include "control-plane/storage/schema.hpp"

namespace gitops::control_plane_server {

int run_program(int argc, char** argv) {
  prepare_process();
  cli::Console console{.out = std::cout, .err = std::cerr};
  const std::vector<std::string> arguments{argv + (argc > 0 ? 1 : 0), argv + argc};
  auto code = run_account_command({.add_location = bind_database, .migrations = migrations()},
                                  arguments, process_environment(), console);
  if (!code) {
    code = run_copy_command({.add_location = bind_database, .migrations = migrations()}, arguments,
                            process_environment(), console);
  }
  if (!code) {
    code = run_backup_command({.add_location = bind_database, .migrations = migrations()},
                              arguments, process_environment(), console);
  }
  if (!code) code = run_audit_command(bind_database, arguments, process_environment(), console);
  if (code) return std::cout.flush() ? *code : cli::kFailed;
  return run_daemon(control_plane(), argc, argv);
}

}  // namespace gitops::control_plane_server
