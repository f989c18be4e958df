#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/actions/answers.hpp"
#include "app-proxy/users/caller.hpp"
#include "app-proxy/users/rules.hpp"
#include "common/argo/argocd_client.hpp"
#include "common/core/credential.hpp"

namespace gitops::app_proxy {

// What users do with Applications, by argocd-server. Each call reads the Application, asks the account's
// rules, and then acts. An Application that is missing and one that the user may not act on are the same
// to users who are no administrators. Loop thread only; its dependencies outlive it.
class ApplicationActions {
 public:
  // `token` is the one that `argocd` sends.
  ApplicationActions(argo::ArgoCdClient& argocd, Credential& token, const Rules& rules,
                     std::string runtime);

  // The Application after the user's right to `action` was checked. VIEW tells a missing one as
  // `forbidden` to everybody; other actions tell administrators that it is missing.
  Task<Result<std::string>> permitted(const User& user, Action action, argo::AppRef app,
                                      Deadline deadline);

  // `options` as ArgoCdClient::sync(). Returns when Argo CD has taken it, not when it has ended.
  Task<Result<void>> sync(const User& user, argo::AppRef app, std::string options,
                          Deadline deadline);
  Task<Result<void>> refresh(const User& user, argo::AppRef app, argo::Refresh how,
                             Deadline deadline);
  // To an entry of the Application's history. Needs auto-sync to be off.
  struct Rollback {
    std::int64_t history_id = 0;
    bool dry_run = false;
    bool prune = false;
  };
  Task<Result<void>> rollback(const User& user, argo::AppRef app, Rollback to, Deadline deadline);
  Task<Result<Outcome>> terminate(const User& user, argo::AppRef app, Deadline deadline);
  // Administrators only.
  Task<Result<void>> remove(const User& user, argo::AppRef app, bool cascade,
                            std::string propagation, Deadline deadline);

  // After a commit that removes a Git source: has its `parents` compared with Git again, and waits until Argo CD
  // has pruned its Application. Nothing to wait for when there is no such Application, or when it is of no
  // Git source. Reason kPruning when the time does not suffice, or when Argo CD does not tell.
  Task<Result<void>> wait_until_pruned(std::string git_source, std::vector<argo::AppRef> parents,
                                       Deadline deadline);

  // An object of the Application. Its namespace and version may be left out when the Application has
  // deployed it. The answer is one item of argocd-server's managed-resources, or only its liveState when
  // the Application has not deployed it itself.
  Task<Result<std::string>> resource(const User& user, argo::AppRef app, argo::ResourceRef which,
                                     Deadline deadline);
  // Administrators only: no rule is about it. Returns the object's JSON.
  Task<Result<std::string>> patch_resource(const User& user, argo::AppRef app,
                                           argo::ResourceRef which, std::string patch_type,
                                           std::string patch, Deadline deadline);
  Task<Result<void>> delete_resource(const User& user, argo::AppRef app, argo::ResourceRef which,
                                     argo::Removal how, Deadline deadline);
  // A JSON array of {"name","disabled","params"}.
  Task<Result<std::string>> resource_actions(const User& user, argo::AppRef app,
                                             argo::ResourceRef which, Deadline deadline);
  // `parameters`: a JSON array of {"name","value"}.
  Task<Result<void>> run_action(const User& user, argo::AppRef app, argo::ResourceRef which,
                                std::string action, std::string parameters, Deadline deadline);

  // The logs of its pods, for who may VIEW_POD_LOGS.
  Task<Result<OpenedLogs>> logs(const User& user, argo::AppRef app, argo::AppLogOptions options,
                                Deadline deadline);
  // Whether the Application has a pod of that name, for who may VIEW it; its JSON.
  Task<Result<std::string>> permitted_pod(const User& user, argo::AppRef app, std::string ns,
                                          std::string pod, Deadline deadline);
  // Asks again, by the rules of that time, whether a user has the right that permitted() has checked. The Application
  // counts as it was.
  [[nodiscard]] StillAllowed still_allowed(Action action, std::string_view application) const;

  [[nodiscard]] const std::string& runtime() const { return runtime_; }

 private:
  // Asks again when the token was refused and there is a newer one.
  template <class Ask>
  auto with_token(Ask ask) -> decltype(ask());

  argo::ArgoCdClient& argocd_;
  Credential& token_;
  const Rules& rules_;
  std::string runtime_;
};

// Below: pure. `application` is its JSON.

// As far as refusals depend on it.
struct ApplicationState {
  bool has_operation = false;  // in progress, or about to begin
  bool is_automated = false;   // auto-sync
};
ApplicationState application_state(std::string_view application);

// Whether the Application of a Git source is gone, by argocd-server's answer to a read that names no project. An
// Application of that name that is no Git source counts as gone. Nothing: the answer does not tell. `sees_all`: the
// account of the runtime may get all Applications.
std::optional<bool> is_pruned(const Result<std::string>& answer, bool sees_all);

// Fills in the namespace and the version of an object that the Application has deployed, if it has one of
// this group, kind and name. False when it has none, or several in different namespaces.
bool complete(argo::ResourceRef& which, std::string_view application);

// Whether a resource tree of Argo CD has this pod.
bool has_pod(std::string_view tree, std::string_view ns, std::string_view name);

// The right that an action of Argo CD needs; nothing when no rule is about it, so that it is for
// administrators.
std::optional<Action> right_for(const argo::ResourceRef& which, std::string_view action);

}  // namespace gitops::app_proxy
