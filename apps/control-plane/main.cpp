#include <iostream>
#include <string>
#include <vector>

#include "common/core/process.hpp"
#include "common/daemon/daemon.hpp"
#include "control-plane/accounts/user_command.hpp"
#include "control-plane/app.hpp"
#include "control-plane/config.hpp"
#include "control-plane/storage/copy_command.hpp"
#include "control-plane/storage/schema.hpp"

int main(int argc, char** argv) {
  namespace server = gitops::control_plane_server;
  gitops::prepare_process();
  gitops::cli::Console console{.out = std::cout, .err = std::cerr};
  const std::vector<std::string> arguments{argv + (argc > 0 ? 1 : 0), argv + argc};
  auto code = server::run_account_command(
      {.add_location = server::bind_database, .migrations = server::migrations()}, arguments,
      gitops::process_environment(), console);
  if (!code) {
    code = server::run_copy_command(
        {.add_location = server::bind_database, .migrations = server::migrations()}, arguments,
        gitops::process_environment(), console);
  }
  if (code) return std::cout.flush() ? *code : gitops::cli::kFailed;
  return gitops::run_daemon(server::control_plane(), argc, argv);
}
