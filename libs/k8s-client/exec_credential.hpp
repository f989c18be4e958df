#pragma once

#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/core/time.hpp"
#include "k8s-client/config.hpp"

// Credentials printed by an exec plugin ("exec" in a kubeconfig): the ExecCredential protocol,
// client.authentication.k8s.io/v1 and v1beta1, KEP 541.
namespace gitops::k8s {

// A client certificate with its chain, and its key. Either both are empty or neither.
struct ClientCertificate {
  std::string certificate_pem = {};
  Secret key_pem = {};

  bool operator==(const ClientCertificate&) const = default;
};

// The result of a plugin: a token, a client certificate, or both.
struct ExecCredential {
  Secret token = {};
  ClientCertificate certificate = {};
  WallTime expires = WallTime::max();
};

// The value of KUBERNETES_EXEC_INFO: there is no terminal, and, when the kubeconfig asks for it,
// the cluster. `config.exec` must be set. Fails when the certificate authority cannot be read.
Result<std::string> exec_info(const ClusterConfig& config);

// Parses the output of a plugin. Errors begin with "its output" and quote none of it.
Result<ExecCredential> parse_exec_credential(std::string_view text, std::string_view api_version);

// Runs the plugin of `config.exec` without a shell, with empty input and with config.exec's
// environment alone, for at most a minute and 1 MiB of output. Its process group is killed at the
// deadline and on cancellation. Errors name the command, quote installHint when it is missing, and
// quote at most the first line of its standard error. Loop thread.
Task<Result<ExecCredential>> run_exec_plugin(const ClusterConfig& config, Deadline deadline);

}  // namespace gitops::k8s
