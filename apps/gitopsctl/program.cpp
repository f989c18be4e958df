#include "gitopsctl/program.hpp"

#include <utility>

#include "gitopsctl/app.hpp"
#include "gitopsctl/app_actions.hpp"
#include "gitopsctl/audit.hpp"
#include "gitopsctl/check.hpp"
#include "gitopsctl/cluster.hpp"
#include "gitopsctl/event.hpp"
#include "gitopsctl/git_source.hpp"
#include "gitopsctl/login.hpp"
#include "gitopsctl/people.hpp"
#include "gitopsctl/rule.hpp"
#include "gitopsctl/runtime.hpp"
#include "gitopsctl/status.hpp"
#include "gitopsctl/version.hpp"
#include "gitopsctl/webhooks.hpp"

namespace gitops::ctl {

cli::Program gitopsctl() {
  cli::Program program{.name = "gitopsctl",
                       .summary = "works with GitOps Runtimes and their control plane",
                       .commands = {},
                       .groups = {{"app", "Applications: list, look, sync, roll back"},
                                  {"cluster", "Clusters that the runtimes deploy to"},
                                  {"context", "Control planes that you are logged in to"},
                                  {"git-source", "Git sources of the runtimes"},
                                  {"rule", "Access rules, and what they allow"},
                                  {"runtime", "Runtimes: list, look, add, remove"},
                                  {"service-account", "Callers for programs"},
                                  {"team", "Teams of the account"},
                                  {"token", "Your API keys"},
                                  {"user", "Users of the account"}},
                       .names = {{"APP", "app list -o name --timeout=5s"},
                                 {"CONTEXT", "context list -o name"},
                                 {"RUNTIME", "runtime list -o name --timeout=5s"}}};
  for (const auto& noun :
       {login_commands, context_commands, status_commands, app_commands, app_action_commands,
        runtime_commands, git_source_commands, cluster_commands, event_commands, audit_commands,
        rule_commands, people_commands}) {
    for (auto& command : noun()) program.commands.push_back(std::move(command));
  }
  for (auto* command : {check_command, version_command, webhooks_command}) {
    program.commands.push_back(command());
  }
  return program;
}

}  // namespace gitops::ctl
