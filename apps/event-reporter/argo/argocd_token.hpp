#pragma once

#include <string>

#include "common/core/credential.hpp"
#include "k8s-client/client.hpp"

// Tokens for argocd-server that are neither fixed nor in a file.
namespace gitops::reporter {

// A key of a Secret, read through the API server every minute and when argocd-server refused the
// token. Needs the right to get that Secret. `client` outlives it.
[[nodiscard]] Credential secret_credential(k8s::Client& client, k8s::ObjectKey key,
                                           std::string data_key);

// The token of a login, which is repeated when argocd-server refused the token. A wrong password is
// tried no more often than every 70 s: argocd-server refuses everybody after five failures in
// 300 s.
[[nodiscard]] Credential session_credential(Credential::Fetch log_in);

}  // namespace gitops::reporter
