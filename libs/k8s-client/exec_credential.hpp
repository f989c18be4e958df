#pragma once

#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/core/time.hpp"
#include "k8s-client/config.hpp"

// Credentials that a program prints ("exec" of a kubeconfig): the ExecCredential protocol,
// client.authentication.k8s.io/v1 and v1beta1, KEP 541.
namespace gitops::k8s {

// A certificate to present to the server, with its chain and its key; both are empty or none.
struct ClientCertificate {
  std::string certificate_pem = {};
  Secret key_pem = {};

  bool operator==(const ClientCertificate&) const = default;
};

// What a program gave: a token, a client certificate, or both.
struct ExecCredential {
  Secret token = {};
  ClientCertificate certificate = {};
  WallTime expires = WallTime::max();
};

// What the program is told in KUBERNETES_EXEC_INFO: that there is no terminal, and the cluster when
// it asks for that. `config.exec` is set. Fails when the certificate authority cannot be read.
Result<std::string> exec_info(const ClusterConfig& config);

// Reads what it printed. Errors begin with "its output" and quote nothing of it.
Result<ExecCredential> parse_exec_credential(std::string_view text, std::string_view api_version);

// Runs the program of `config.exec` without a shell, with empty input, only its own environment, at
// most a minute and 1 MiB of output. It is killed with its process group when the caller gives up
// or is cancelled. Errors name the command, say how to install it when it is missing, and show at
// most the first line of its complaints. Loop thread.
Task<Result<ExecCredential>> run_exec_plugin(const ClusterConfig& config, Deadline deadline);

}  // namespace gitops::k8s
