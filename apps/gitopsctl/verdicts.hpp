#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/core/error.hpp"
#include "gitopsctl/permissions.hpp"
#include "gitopsctl/report.hpp"
#include "k8s-client/client.hpp"

// Converts the responses of the peers to rows of the report. No I/O.
namespace gitops::ctl {

// Row for the version of an API server. A refusal (401, 403) shows that it is reachable, too.
Row api_server_row(const Result<k8s::ServerVersion>& answer, std::chrono::milliseconds took);

// True when the request was not sent: the kubeconfig's exec plugin or token file returned no
// credential.
bool is_without_credential(const Error& error);

// Row for the credentials. `user` is the user name by SelfSubjectReview.
Row credentials_row(const Result<std::string>& user);

// The API server's response for one verb of a permission, on one object or on all.
struct PermissionAnswer {
  std::string verb;
  std::string name;
  Result<bool> allowed;
};
Row permission_row(const Permission& permission, const std::string& ns,
                   const std::vector<PermissionAnswer>& answers);

// Row for GET /api/version of argocd-server.
Row argocd_row(const Result<std::string>& answer, std::chrono::milliseconds took);

// Row for the token of Argo CD. True: it may get all Applications; false: only some.
Row argocd_token_row(const Result<bool>& may_get_applications);
// Row for app-proxy, which reports clusters when it registers the runtime.
Row argocd_clusters_row(const Result<bool>& may_get_clusters);

// Rows for reachability and token, from one call to the control plane for the token's account.
std::vector<Row> control_plane_rows(const Result<std::string>& account,
                                    std::chrono::milliseconds took);

}  // namespace gitops::ctl
