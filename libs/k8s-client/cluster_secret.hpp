#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "k8s-client/config.hpp"

namespace gitops::k8s {

// A Secret that tells Argo CD of a managed cluster (label argocd.argoproj.io/secret-type=cluster;
// argo-cd.readthedocs.io, "Declarative Setup", Clusters).
struct ClusterSecret {
  std::string name;    // of the cluster; of ASCII that can be printed, and short
  std::string server;  // URL of its API server, without a slash at the end; empty: not to be read
  std::vector<std::string> namespaces;  // the only ones to be touched; empty: all
  // How to reach it, or why it can't be used. Messages never hold what the Secret held.
  Result<ClusterConfig> config = ClusterConfig{};
};

// `object` is the Secret's JSON. Credentials that come from a program or from a cloud are refused:
// nothing is run.
[[nodiscard]] ClusterSecret parse_cluster_secret(std::string_view object);

// Whether the URL is that of the cluster that we run in, by the names it has inside or by `own`.
[[nodiscard]] bool is_own_cluster(std::string_view server, const http::Url& own);

inline constexpr const char* kClusterSecretSelector = "argocd.argoproj.io/secret-type=cluster";

}  // namespace gitops::k8s
