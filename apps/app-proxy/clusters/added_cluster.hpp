#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/net/address_list.hpp"

// A cluster that somebody adds to the runtime, and the Secret that describes it to Argo CD. Pure.
namespace gitops::app_proxy {

struct AddedCluster {
  std::string name;    // a DNS label that begins with a letter
  std::string server;  // https URL of its API server, without a slash at its end
  Secret config;       // how Argo CD authenticates to it, as JSON
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

// The body of POST /api/clusters, as the add-cluster Job of the public command line sends it:
// {"name","kubeConfig","annotations","labels"}; the last three are base64, of a kubeconfig with a context of that
// name and of YAML maps, which may be empty. Refused: what would run a program or read a file (exec, auth-provider,
// file names), proxies, servers without TLS, and servers at addresses of special use (net::is_special_address) unless
// they are in `allowed`. A host that is a name is not looked up here. Messages show nothing of the credentials.
Result<AddedCluster> parse_added_cluster(std::string_view body, const net::AddressList& allowed);

// Without slashes at its end.
std::string normal_server(std::string_view server);
// The name that Argo CD gives to a cluster's Secret (its util/db, URIToSecretName).
std::string cluster_secret_name(std::string_view server);

// A Secret of a cluster, as far as it is looked for.
struct KnownCluster {
  std::string secret;  // name of the object
  std::string name;
  std::string server;
  std::string object;  // JSON
};
// Of a SecretList; items that are not readable are left out. `protocol` when it is no list.
Result<std::vector<KnownCluster>> parse_known_clusters(std::string_view list);
// The one that the added cluster replaces: that with its server, or else that with its name. `conflict` when these are
// two.
Result<std::optional<KnownCluster>> replaced_by(const AddedCluster& added,
                                                const std::vector<KnownCluster>& known);

// The Secret as JSON. With `before`, the stored object, whose other contents stay.
Secret cluster_secret_object(std::string_view ns, const AddedCluster& cluster,
                             std::string_view before = {});

}  // namespace gitops::app_proxy
