#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "k8s-client/config.hpp"

namespace gitops::k8s {

// A Secret that describes a managed cluster to Argo CD (label
// argocd.argoproj.io/secret-type=cluster; argo-cd.readthedocs.io, "Declarative Setup", Clusters).
struct ClusterSecret {
  std::string name;    // name of the cluster; short, printable ASCII
  std::string server;  // URL of its API server without a trailing slash; empty when unreadable
  std::vector<std::string> namespaces;  // namespaces that may be used; empty: all
  // The access to the cluster, or the reason why it cannot be used. Messages quote nothing of the
  // Secret.
  Result<ClusterConfig> config = ClusterConfig{};
};

// Parses a Secret's JSON. Credentials from a program or a cloud provider are refused: no program is
// run.
[[nodiscard]] ClusterSecret parse_cluster_secret(std::string_view object);

// Returns whether the URL means the cluster that we run in: one of its internal names, or `own`.
[[nodiscard]] bool is_own_cluster(std::string_view server, const http::Url& own);

inline constexpr const char* kClusterSecretSelector = "argocd.argoproj.io/secret-type=cluster";

}  // namespace gitops::k8s
