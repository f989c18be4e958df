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

// A program that prints credentials (client.authentication.k8s.io/v1 and v1beta1 ExecCredential).
// Runs only when kubeconfigs were allowed to name programs (AC-30).
struct ExecPlugin {
  std::string api_version;
  std::string command;  // looked up in PATH when it has no slash, otherwise absolute
  std::vector<std::string> arguments;
  // All that the program gets to see: nothing is inherited, so that a credential in our own
  // environment stays ours. load_cluster_config() adds what ExecPolicy says.
  std::map<std::string, std::string> environment;
  std::string install_hint = {};  // shown when there is no such program
  bool provide_cluster_info = false;
  // JSON: the cluster's extension "client.authentication.k8s.io/exec", told with the cluster.
  std::string cluster_settings = {};
};

// How to reach and authenticate to one API server; a plain value, loaded below and then only read.
// Of the credentials at most one is set; a client certificate (in tls) may stand beside them.
struct ClusterConfig {
  http::Url server;
  net::TlsOptions tls;
  std::optional<http::Url> proxy;  // kubeconfig's proxy-url; wins over the environment
  std::string default_namespace = "default";

  Secret token;
  std::string token_file;  // read again when it changes
  std::string username;    // basic authentication, for proxies in front of API servers
  Secret password;
  std::optional<ExecPlugin> exec;
};

// The pod's own service account: KUBERNETES_SERVICE_HOST and _PORT, and the files under `mount`
// (token, ca.crt, namespace).
Result<ClusterConfig> in_cluster_config(
    const std::map<std::string, std::string>& environment,
    const std::string& mount = "/var/run/secrets/kubernetes.io/serviceaccount");

// May a kubeconfig name a program to run, and what does the program see of our environment?
enum class ExecPolicy {
  refuse,
  // Yes, with PATH, HOME and a few more: for daemons, whose environment may hold credentials.
  allow,
  // Yes, with all of it: for a tool that a person runs. Plugins of cloud providers find their
  // profile and their session there.
  allow_inheriting,
};

// Reads and merges kubeconfig files as client-go does: the first file that has an entry of a name,
// or a current-context, wins; entries of different files are not mixed. Relative paths are relative
// to the file that names them. Resolves `context` (empty: current-context). Missing files are
// skipped when there are several. Files are YAML or JSON of at most 1 MiB.
//
// Every mistake in the chosen entries is reported, each with file and line, never with a
// credential. Refused with a hint: programs (unless allowed) and those that want a terminal,
// auth-provider entries, impersonation.
Result<ClusterConfig> kubeconfig(const std::vector<std::string>& files, const std::string& context,
                                 ExecPolicy exec);

// The same for texts that are in memory already; `path` names a text in messages and is what
// relative paths are relative to.
struct KubeconfigText {
  std::string path;
  std::string text;
};
Result<ClusterConfig> kubeconfig_from_text(const std::vector<KubeconfigText>& texts,
                                           const std::string& context, ExecPolicy exec);

// The usual order: `path` (a --kubeconfig flag) > $KUBECONFIG (colon separated) > in-cluster (when
// no context was asked for) > $HOME/.kube/config.
Result<ClusterConfig> load_cluster_config(const std::string& path, const std::string& context,
                                          const std::map<std::string, std::string>& environment,
                                          ExecPolicy exec);

}  // namespace gitops::k8s
