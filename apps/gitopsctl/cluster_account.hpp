#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "k8s-client/config.hpp"
#include "k8s-client/resource.hpp"

// The account of Argo CD in a cluster that a runtime deploys to, and the request that adds the cluster. Pure.
namespace gitops::ctl {

inline constexpr std::string_view kClusterAccount = "argocd-manager";
inline constexpr std::string_view kClusterRole = "argocd-manager-role";

// An object of the account.
struct AccountObject {
  k8s::Resource resource;
  k8s::ObjectKey key;
  nlohmann::json object;
};

// Returns the ServiceAccount, its ClusterRole with its binding, and the Secret for its token, with the names and rules
// of `argocd cluster add` (Argo CD, util/clusterauth). The ClusterRole allows everything.
std::vector<AccountObject> account_objects(const std::string& system_namespace);
// Returns the key of the Secret for the token.
k8s::ObjectKey token_secret(const std::string& system_namespace);
// Returns the objects as YAML documents.
std::string manifests_text(const std::vector<AccountObject>& objects);

// Returns the token in that Secret; nullopt while the cluster has not filled it in. `protocol` for a text that is not a
// Secret. Errors do not quote the text.
Result<std::optional<Secret>> token_of(std::string_view secret_json);

// Returns why app-proxy would refuse this name of a cluster; empty for a valid one.
std::string cluster_name_mistake(std::string_view name);

// Returns a map of KEY=VALUE items. kUsage for another item, and for a key that is there twice; `flag` is named.
Result<nlohmann::json> key_values(std::string_view flag, const std::vector<std::string>& items);

struct AddedCluster {
  std::string name;
  std::string server;     // URL
  net::TlsOptions tls;    // with the certificates in place, not as files
  Secret token;           // of the account
  nlohmann::json labels;  // maps of texts
  nlohmann::json annotations;
};
// Returns the body of POST /api/clusters of app-proxy (docs/reference/app-proxy/clusters.md).
Secret add_request(const AddedCluster& cluster);

}  // namespace gitops::ctl
