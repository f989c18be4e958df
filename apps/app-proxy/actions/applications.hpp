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

// User actions on Applications, through argocd-server. Each call reads the Application, checks the
// account's rules, and then acts. Users who are not administrators get the same error for a missing
// Application and for one that they may not act on. Loop thread only; its dependencies outlive it.
class ApplicationActions {
 public:
  // `token` is the credential that `argocd` sends.
  ApplicationActions(argo::ArgoCdClient& argocd, Credential& token, const Rules& rules,
                     std::string runtime);

  // Returns the Application after the user's permission for `action` was checked. For VIEW a
  // missing Application is `forbidden` for everybody; for other actions administrators get
  // not_found.
  Task<Result<std::string>> permitted(const User& user, Action action, argo::AppRef app,
                                      Deadline deadline);

  // `options` are those of ArgoCdClient::sync(). Returns when Argo CD has accepted the sync; does
  // not wait for its end.
  Task<Result<void>> sync(const User& user, argo::AppRef app, std::string options,
                          Deadline deadline);
  Task<Result<void>> refresh(const User& user, argo::AppRef app, argo::Refresh how,
                             Deadline deadline);
  // Rolls back to an entry of the Application's history. Needs auto-sync to be off.
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

  // Used after a commit that removes a Git source: makes Argo CD compare its `parents` with Git
  // again, and waits until the Application of the Git source is pruned. Returns false at once when
  // there is no such Application or when it is not of a Git source. Fails with reason kPruning at
  // the deadline, or when the state of the Application is unknown.
  Task<Result<bool>> wait_until_pruned(std::string git_source, std::vector<argo::AppRef> parents,
                                       Deadline deadline);

  // Returns an object of the Application. Its namespace and version may be left out when the
  // Application has deployed it. The result is one item of argocd-server's managed-resources, or
  // only its liveState when the Application has not deployed the object itself.
  Task<Result<std::string>> resource(const User& user, argo::AppRef app, argo::ResourceRef which,
                                     Deadline deadline);
  // Returns the object's JSON. Administrators only, since no rule covers it.
  Task<Result<std::string>> patch_resource(const User& user, argo::AppRef app,
                                           argo::ResourceRef which, std::string patch_type,
                                           std::string patch, Deadline deadline);
  Task<Result<void>> delete_resource(const User& user, argo::AppRef app, argo::ResourceRef which,
                                     argo::Removal how, Deadline deadline);
  // Returns a JSON array of {"name","disabled","params"}.
  Task<Result<std::string>> resource_actions(const User& user, argo::AppRef app,
                                             argo::ResourceRef which, Deadline deadline);
  // `parameters` is a JSON array of {"name","value"}.
  Task<Result<void>> run_action(const User& user, argo::AppRef app, argo::ResourceRef which,
                                std::string action, std::string parameters, Deadline deadline);

  // Opens the logs of the Application's pods. Needs VIEW_POD_LOGS.
  Task<Result<OpenedLogs>> logs(const User& user, argo::AppRef app, argo::AppLogOptions options,
                                Deadline deadline);
  // Returns the Application's JSON if its tree has an object of this kind and name; `of` needs no version. Needs VIEW.
  Task<Result<std::string>> permitted_object(const User& user, argo::AppRef app,
                                             argo::ResourceRef of, Deadline deadline);
  // Returns a function that repeats the check of permitted() with the rules of that time. The
  // Application itself is not read again.
  [[nodiscard]] StillAllowed still_allowed(Action action, std::string_view application) const;

  [[nodiscard]] const std::string& runtime() const { return runtime_; }

 private:
  // Repeats the request when the token was refused and there is a newer one.
  template <class Ask>
  auto with_token(Ask ask) -> decltype(ask());

  argo::ArgoCdClient& argocd_;
  Credential& token_;
  const Rules& rules_;
  std::string runtime_;
};

// Pure functions. `application` is the Application's JSON.

// State of an Application on which refusals depend.
struct ApplicationState {
  bool has_operation = false;  // in progress, or about to start
  bool is_automated = false;   // auto-sync
};
ApplicationState application_state(std::string_view application);

// Checks whether the Application of a Git source is gone, from argocd-server's response to a read
// that names no project. An Application of that name that is not of a Git source counts as gone.
// Returns nullopt when the response does not show it. `sees_all`: the runtime's account may get all
// Applications.
std::optional<bool> is_pruned(const Result<std::string>& answer, bool sees_all);

// Fills in the namespace and the version of an object that the Application has deployed, if there
// is one of this group, kind and name. Returns false when there is none, or several in different
// namespaces.
bool complete(argo::ResourceRef& which, std::string_view application);

// Checks that a resource tree of Argo CD contains this object, whatever its version.
bool has_object(std::string_view tree, const argo::ResourceRef& of);

// Permission that an action of Argo CD needs. Returns nullopt when no rule covers it; then only
// administrators may run it.
std::optional<Action> right_for(const argo::ResourceRef& which, std::string_view action);

}  // namespace gitops::app_proxy
