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

// The servers of Argo CD and Argo Workflows as they are configured, and what users do with them and with
// Rollouts. Starts at once. Loop thread; the arguments outlive it.
class ArgoParts {
 public:
  // `cluster` is null while the runtime has no access to its cluster.
  ArgoParts(const DaemonContext& context, const Config& config, net::Resolver& names,
            const http::ProxySettings& proxy, const Rules& rules, k8s::Client* cluster);

  // Ends the logins.
  Task<> stop();

  // Null: not configured.
  [[nodiscard]] ApplicationActions* applications() { return pointer_to(applications_); }
  [[nodiscard]] WorkflowActions* workflows() { return pointer_to(workflows_); }
  [[nodiscard]] argo::ArgoCdClient* argocd() { return pointer_to(argocd_); }
  // Null: no access to the cluster.
  [[nodiscard]] RolloutActions* rollouts() { return pointer_to(rollouts_); }
  // Of Argo CD; null when it is not configured.
  [[nodiscard]] Credential* argocd_token() { return pointer_to(argocd_token_); }
  // Whether argo-server answers; only when it is configured.
  Task<Result<void>> reach_workflows(Deadline deadline);
  // For /statusz.
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
