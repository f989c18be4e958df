#include "gitopsctl/program.hpp"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "gitopsctl/app.hpp"
#include "gitopsctl/app_actions.hpp"
#include "gitopsctl/audit.hpp"
#include "gitopsctl/check.hpp"
#include "gitopsctl/cluster.hpp"
#include "gitopsctl/demo.hpp"
#include "gitopsctl/diag.hpp"
#include "gitopsctl/event.hpp"
#include "gitopsctl/git_source.hpp"
#include "gitopsctl/login.hpp"
#include "gitopsctl/people.hpp"
#include "gitopsctl/people_changes.hpp"
#include "gitopsctl/rollout.hpp"
#include "gitopsctl/rule.hpp"
#include "gitopsctl/runtime.hpp"
#include "gitopsctl/status.hpp"
#include "gitopsctl/version.hpp"
#include "gitopsctl/webhooks.hpp"
#include "gitopsctl/workflow.hpp"

namespace gitops::ctl {

namespace {

std::string group_of(const cli::Command& command) {
  const auto blank = command.name.find(' ');
  return blank == std::string::npos ? std::string() : command.name.substr(0, blank);
}

// Adds a command behind those of its group.
void add(std::vector<cli::Command>& commands, cli::Command command) {
  const auto group = group_of(command);
  auto at = commands.end();
  while (!group.empty() && at != commands.begin() && group_of(*std::prev(at)) != group) --at;
  commands.insert(at == commands.begin() ? commands.end() : at, std::move(command));
}

}  // namespace

cli::Program gitopsctl() {
  cli::Program program{.name = "gitopsctl",
                       .summary = "works with GitOps Runtimes and their control plane",
                       .commands = {},
                       .groups = {{"app", "Applications: list, look, sync, roll back"},
                                  {"cluster", "Clusters that the runtimes deploy to"},
                                  {"context", "Control planes that you are logged in to"},
                                  {"event", "What happens: deployments, changes, events again"},
                                  {"git-source", "Git sources of the runtimes"},
                                  {"rollout", "Rollouts: look, promote, abort, roll back"},
                                  {"rule", "Access rules, and what they allow"},
                                  {"runtime", "Runtimes: list, look, add, remove"},
                                  {"service-account", "Callers for programs"},
                                  {"team", "Teams of the account"},
                                  {"token", "Your API keys"},
                                  {"user", "Users of the account"},
                                  {"webhook", "Webhooks that a request-router keeps"},
                                  {"workflow", "Workflows: look, start, stop, retry"}},
                       .names = {{"APP", "app list -o name --timeout=5s"},
                                 {"CLUSTER", "cluster list -o name --timeout=5s"},
                                 {"CONTEXT", "context list -o name"},
                                 {"GIT-SOURCE", "git-source list -o name --timeout=5s"},
                                 {"RULE", "rule list -o name --timeout=5s"},
                                 {"RUNTIME", "runtime list -o name --timeout=5s"},
                                 {"SERVICE-ACCOUNT", "service-account list -o name --timeout=5s"},
                                 {"TEAM", "team list -o name --timeout=5s"},
                                 {"TOKEN", "token list -o name --timeout=5s"},
                                 {"USER", "user list -o name --timeout=5s"},
                                 {"WORKFLOW", "workflow list -o name --timeout=5s"}},
                       .names_of = "context"};
  for (const auto& noun :
       {login_commands, context_commands, status_commands, app_commands, app_action_commands,
        rollout_commands, workflow_commands, runtime_commands, git_source_commands,
        cluster_commands, event_commands, audit_commands, rule_commands, people_commands,
        people_change_commands}) {
    for (auto& command : noun()) add(program.commands, std::move(command));
  }
  for (auto* command : {check_command, demo_command, diag_command, version_command}) {
    program.commands.push_back(command());
  }
  for (auto& command : webhook_commands()) program.commands.push_back(std::move(command));
  return program;
}

}  // namespace gitops::ctl
