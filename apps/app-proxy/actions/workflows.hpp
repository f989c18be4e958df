#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/actions/answers.hpp"
#include "app-proxy/users/caller.hpp"
#include "app-proxy/users/rules.hpp"
#include "common/argo/workflows_client.hpp"
#include "common/core/credential.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Actions on a Workflow, named by the verbs of its API server.
enum class WorkflowAction {
  terminate,
  stop,     // exit handlers run
  suspend,  // no new step starts
  resume,
  retry,     // failed steps only
  resubmit,  // as a new Workflow
  set,       // fields of a waiting step
  remove,
};
std::string_view to_string(WorkflowAction action);
// Permission that an action needs. Where the account's rules have no matching action, the nearest
// one is used.
Action right_for(WorkflowAction action);

// User actions on Workflows, through the API server of Argo Workflows with the runtime's own
// account. Each call reads the Workflow, checks the account's rules, and then acts. Users who are
// not administrators get the same error for a missing Workflow and for one that they may not act
// on. Loop thread only; its dependencies outlive it.
class WorkflowActions {
 public:
  WorkflowActions(argo::WorkflowsClient& workflows, Credential& token, const Rules& rules,
                  std::string runtime);

  // Turns on labels for users: a changed Workflow names the user as its actor and a new one as its
  // creator, instead of the runtime's own account (see who_labels()). `cluster` holds the
  // Workflows.
  void name_users_in(k8s::Client& cluster) { cluster_ = &cluster; }

  // Result of an action: the name of the changed or the new Workflow. `options` is a JSON object,
  // as in the server's request for this verb.
  struct Done {
    Outcome outcome;
    std::string name;
  };
  Task<Result<Done>> act(const User& user, WorkflowAction action, std::string ns, std::string name,
                         std::string options, Deadline deadline);
  // Creates a Workflow from a template and returns its name.
  Task<Result<std::string>> submit(const User& user, std::string ns, std::string workflow_template,
                                   std::string options, Deadline deadline);
  // Opens the logs of the Workflow's pods. Needs ACCESS_LOGS.
  Task<Result<OpenedLogs>> logs(const User& user, std::string ns, std::string name,
                                argo::WorkflowLogOptions options, Deadline deadline);
  // Returns the Workflow's JSON (labels, phase and the like) after the user's permission for
  // `action` was checked.
  Task<Result<std::string>> permitted(const User& user, Action action, std::string ns,
                                      std::string name, Deadline deadline);
  // Returns a function that repeats the check of permitted() with the rules of that time. The
  // Workflow itself is not read again.
  [[nodiscard]] StillAllowed still_allowed(Action action, std::string_view workflow) const;

 private:
  template <class Ask>
  auto with_token(Ask ask) -> decltype(ask());
  Error missing(const User& user, Error error, std::string_view kind,
                const std::string& name) const;

  Task<> name_user(const User& user, std::string_view role, k8s::ObjectKey key, Deadline deadline);

  argo::WorkflowsClient& workflows_;
  k8s::Client* cluster_ = nullptr;
  Credential& token_;
  const Rules& rules_;
  std::string runtime_;
};

// Outcome of an action that has nothing to do, because the Workflow already is as wanted or has
// ended. An error when the action is impossible in its state. `workflow` is its JSON. Pure.
Result<Outcome> workflow_outcome(WorkflowAction action, std::string_view workflow);

// Returns a merge patch with the labels by which Argo Workflows names the user who changed
// ("actor") or created ("creator") a Workflow: workflows.argoproj.io/ROLE, ROLE-email and
// ROLE-preferred-username. Labels for unknown values are removed. Pure.
std::string who_labels(const User& user, std::string_view role);

// Converts a text to the value of a label in the same way as Argo Workflows (workflow/creator):
// other characters become '-', and only the last 63 are kept. Pure.
std::string label_value(std::string_view text);

}  // namespace gitops::app_proxy
