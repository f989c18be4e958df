#include "gitopsctl/program.hpp"

#include <utility>

#include "gitopsctl/app.hpp"
#include "gitopsctl/check.hpp"
#include "gitopsctl/login.hpp"
#include "gitopsctl/runtime.hpp"
#include "gitopsctl/version.hpp"
#include "gitopsctl/webhooks.hpp"

namespace gitops::ctl {

cli::Program gitopsctl() {
  cli::Program program{.name = "gitopsctl",
                       .summary = "works with GitOps Runtimes and their control plane",
                       .commands = {},
                       .groups = {{"app", "Applications: list, look, sync, roll back"},
                                  {"context", "Control planes that you are logged in to"},
                                  {"runtime", "Runtimes: list, look, add, remove"}},
                       .names = {{"APP", "app list -o name --timeout=5s"},
                                 {"CONTEXT", "context list -o name"},
                                 {"RUNTIME", "runtime list -o name --timeout=5s"}}};
  for (const auto& noun : {login_commands, context_commands, app_commands, runtime_commands}) {
    for (auto& command : noun()) program.commands.push_back(std::move(command));
  }
  for (auto* command : {check_command, version_command, webhooks_command}) {
    program.commands.push_back(command());
  }
  return program;
}

}  // namespace gitops::ctl
