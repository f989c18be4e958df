#pragma once

#include <optional>
#include <string>

#include "app-proxy/actions/applications.hpp"
#include "app-proxy/actions/rollouts.hpp"
#include "app-proxy/actions/workflows.hpp"
#include "app-proxy/config.hpp"
#include "app-proxy/users/rules.hpp"
#include "common/argo/argocd_client.hpp"
#include "common/argo/workflows_client.hpp"
#include "common/core/credential.hpp"
#include "common/core/task_group.hpp"
#include "common/daemon/daemon.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"

namespace gitops::app_proxy {

// Clients of the configured servers of Argo CD and Argo Workflows, and the user actions on their
// objects and on Rollouts. Starts at once. Loop thread; the arguments outlive it.
class ArgoParts {
 public:
  // `cluster` is null while the runtime has no access to its cluster.
  ArgoParts(const DaemonContext& context, const Config& config, net::Resolver& names,
            const http::ProxySettings& proxy, const Rules& rules, k8s::Client* cluster);

  // Ends the logins.
  Task<> stop();

  // Null when Argo CD is not configured.
  [[nodiscard]] ApplicationActions* applications() { return pointer_to(applications_); }
  [[nodiscard]] WorkflowActions* workflows() { return pointer_to(workflows_); }
  [[nodiscard]] argo::ArgoCdClient* argocd() { return pointer_to(argocd_); }
  // Null without access to the cluster.
  [[nodiscard]] RolloutActions* rollouts() { return pointer_to(rollouts_); }
  // Token for Argo CD; null when Argo CD is not configured.
  [[nodiscard]] Credential* argocd_token() { return pointer_to(argocd_token_); }
  // Checks that argo-server responds. Call it only when Argo Workflows is configured.
  Task<Result<void>> reach_workflows(Deadline deadline);
  // Entries for /statusz.
  [[nodiscard]] StatusReport status() const;

 private:
  template <class T>
  static T* pointer_to(std::optional<T>& part) {
    return part ? &*part : nullptr;
  }
  Credential argocd_credential();
  [[nodiscard]] Credential workflows_credential() const;

  const Config& config_;
  std::optional<http::Client> argocd_http_;
  std::optional<Credential> argocd_token_;
  std::optional<argo::ArgoCdClient> argocd_;
  std::optional<ApplicationActions> applications_;
  std::optional<http::Client> workflows_http_;
  std::optional<Credential> workflows_token_;
  std::optional<argo::WorkflowsClient> workflows_client_;
  std::optional<WorkflowActions> workflows_;
  std::optional<RolloutActions> rollouts_;
  TaskGroup tasks_;
};

}  // namespace gitops::app_proxy
