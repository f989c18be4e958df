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

// What is done with a Workflow, by the verbs of its API server.
enum class WorkflowAction {
  terminate,
  stop,     // exit handlers run
  suspend,  // no new step begins
  resume,
  retry,     // the steps that failed
  resubmit,  // as a new Workflow
  set,       // of a step that waits
  remove,
};
std::string_view to_string(WorkflowAction action);
// The right that it needs. The account's rules have no word for some of them: these need the one that
// comes nearest.
Action right_for(WorkflowAction action);

// What users do with Workflows, by the API server of Argo Workflows, with the runtime's own account
// there. Each call reads the Workflow, asks the account's rules, and then acts. A Workflow that is missing
// and one that the user may not act on are the same to users who are no administrators. Loop thread only;
// its dependencies outlive it.
class WorkflowActions {
 public:
  WorkflowActions(argo::WorkflowsClient& workflows, Credential& token, const Rules& rules,
                  std::string runtime);

  // From now on the changed Workflow names the user as its actor, and a new one as its creator, where the
  // server has put the runtime's own account (see who_labels()). `cluster` has the Workflows.
  void name_users_in(k8s::Client& cluster) { cluster_ = &cluster; }

  // `options`: a JSON object as the server's request of this verb has it. The changed Workflow's name, or
  // that of the new one.
  struct Done {
    Outcome outcome;
    std::string name;
  };
  Task<Result<Done>> act(const User& user, WorkflowAction action, std::string ns, std::string name,
                         std::string options, Deadline deadline);
  // A new Workflow from a template; returns its name.
  Task<Result<std::string>> submit(const User& user, std::string ns, std::string workflow_template,
                                   std::string options, Deadline deadline);
  // The logs of its pods, for who may ACCESS_LOGS.
  Task<Result<OpenedLogs>> logs(const User& user, std::string ns, std::string name,
                                argo::WorkflowLogOptions options, Deadline deadline);
  // The Workflow's JSON (labels, phase and the like) after the user's right to `action` was checked.
  Task<Result<std::string>> permitted(const User& user, Action action, std::string ns,
                                      std::string name, Deadline deadline);
  // Asks again, by the rules of that time, whether a user has the right that permitted() has checked. The Workflow
  // counts as it was.
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

// Why nothing is to be done, because the Workflow is as wanted or has ended; an error when the action is
// impossible in its state. `workflow` is its JSON. Pure.
Result<Outcome> workflow_outcome(WorkflowAction action, std::string_view workflow);

// A merge patch with the labels by which Argo Workflows names who changed ("actor") or made ("creator") a
// Workflow: workflows.argoproj.io/ROLE, ROLE-email and ROLE-preferred-username. What is not known of the user is
// removed. Pure.
std::string who_labels(const User& user, std::string_view role);

// A text as the value of a label, in the way of Argo Workflows (workflow/creator): other characters become '-', and
// of a long one the last 63 stay. Pure.
std::string label_value(std::string_view text);

}  // namespace gitops::app_proxy
