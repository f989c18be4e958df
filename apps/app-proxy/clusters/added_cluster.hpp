#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/net/address_list.hpp"

// A cluster that a user adds to the runtime, and the Secret that describes it to Argo CD. Pure.
namespace gitops::app_proxy {

struct AddedCluster {
  std::string name;    // a DNS label that begins with a letter
  std::string server;  // https URL of its API server, without a trailing slash
  Secret config;       // credentials and TLS settings for Argo CD, as JSON
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

// Parses the body of POST /api/clusters, as the add-cluster Job of the public command line sends
// it: {"name","kubeConfig","annotations","labels"}. The last three are base64, of a kubeconfig with
// a context of that name and of YAML maps, which may be empty. Refuses entries that would run a
// program or read a file (exec, auth-provider, file names), proxies, servers without TLS, and
// servers at addresses of special use (net::is_special_address) unless they are in `allowed`. Does
// not resolve the names of hosts. Messages never contain the credentials.
Result<AddedCluster> parse_added_cluster(std::string_view body, const net::AddressList& allowed);

// Removes trailing slashes.
std::string normal_server(std::string_view server);
// Name that Argo CD gives to a cluster's Secret (its util/db, URIToSecretName).
std::string cluster_secret_name(std::string_view server);

// The fields of a cluster's Secret that a search needs.
struct KnownCluster {
  std::string secret;  // name of the object
  std::string name;
  std::string server;
  std::string object;  // JSON
};
// Parses a SecretList; items that are not readable are left out. `protocol` when it is not a list.
Result<std::vector<KnownCluster>> parse_known_clusters(std::string_view list);
// Returns the cluster that the added one replaces: the one with its server, or else the one with
// its name. `conflict` when two different clusters match.
Result<std::optional<KnownCluster>> replaced_by(const AddedCluster& added,
                                                const std::vector<KnownCluster>& known);

// Returns the Secret as JSON. `before` is the stored object; its other contents are kept.
Secret cluster_secret_object(std::string_view ns, const AddedCluster& cluster,
                             std::string_view before = {});

}  // namespace gitops::app_proxy
