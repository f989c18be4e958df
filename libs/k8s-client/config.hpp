#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/http/proxy_settings.hpp"
#include "common/http/url.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::k8s {

// An exec plugin, which prints credentials (ExecCredential of client.authentication.k8s.io/v1 and
// v1beta1). It is run only when the ExecPolicy allows it (AC-30).
struct ExecPlugin {
  std::string api_version;
  std::string command;  // looked up in PATH when it has no slash, otherwise absolute
  std::vector<std::string> arguments;
  // The whole environment of the program: it inherits nothing, so that it does not see credentials
  // in our environment. load_cluster_config() adds variables according to the ExecPolicy.
  std::map<std::string, std::string> environment;
  std::string install_hint = {};  // shown when the program does not exist
  bool provide_cluster_info = false;
  // JSON: the cluster's extension "client.authentication.k8s.io/exec", passed with cluster info.
  std::string cluster_settings = {};
};

// Address, TLS settings and credentials of one API server. A plain value, made by the functions
// below. At most one of the credentials is set, besides a client certificate (in tls).
struct ClusterConfig {
  http::Url server;
  net::TlsOptions tls;
  std::optional<http::Url> proxy;  // proxy-url (http or SOCKS); wins over the environment
  std::string default_namespace = "default";

  Secret token;
  std::string token_file;  // read again when it changes
  std::string username;    // basic authentication, for proxies in front of API servers
  Secret password;
  std::optional<ExecPlugin> exec;
};

// Returns the configuration of the pod's own service account: KUBERNETES_SERVICE_HOST and _PORT,
// and the files under `mount` (token, ca.crt, namespace).
Result<ClusterConfig> in_cluster_config(
    const std::map<std::string, std::string>& environment,
    const std::string& mount = "/var/run/secrets/kubernetes.io/serviceaccount");

// Permission to run the exec plugins of a kubeconfig, and the part of our environment that they
// inherit.
enum class ExecPolicy {
  refuse,
  // Plugins inherit PATH, HOME and a few more: for daemons, whose environment may hold credentials.
  allow,
  // Plugins inherit everything: for command-line tools. Plugins of cloud providers find their
  // profile and their session in it.
  allow_inheriting,
};

// Reads and merges kubeconfig files as client-go does: the first file that has an entry of a name,
// or a current-context, wins; entries of different files are not mixed. Relative paths are relative
// to the file that names them. Resolves `context` (empty: current-context). Missing files are
// skipped when there are several. Files are YAML or JSON of at most 1 MiB.
//
// Reports every mistake in the chosen entries with file and line, never with a credential. Refused
// with a hint: exec plugins (unless allowed), exec plugins that need a terminal, auth-provider
// entries, impersonation.
Result<ClusterConfig> kubeconfig(const std::vector<std::string>& files, const std::string& context,
                                 ExecPolicy exec);

// Reads texts in memory as kubeconfig() reads files; `path` names a text in messages, and relative
// paths are relative to its folder.
struct KubeconfigText {
  std::string path;
  std::string text;
};
Result<ClusterConfig> kubeconfig_from_text(const std::vector<KubeconfigText>& texts,
                                           const std::string& context, ExecPolicy exec);

// Loads the configuration in the usual order: `path` (a --kubeconfig flag) > $KUBECONFIG (colon
// separated) > in-cluster (when no context was requested) > $HOME/.kube/config.
Result<ClusterConfig> load_cluster_config(const std::string& path, const std::string& context,
                                          const std::map<std::string, std::string>& environment,
                                          ExecPolicy exec);

}  // namespace gitops::k8s
