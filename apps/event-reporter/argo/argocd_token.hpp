#pragma once

#include <string>

#include "common/core/credential.hpp"
#include "k8s-client/client.hpp"

// Tokens for argocd-server that are neither fixed nor in a file.
namespace gitops::reporter {

// A token in a key of a Secret, which is read every minute and after argocd-server refused the token.
// Needs the right to get that Secret. `client` outlives it.
[[nodiscard]] Credential secret_credential(k8s::Client& client, k8s::ObjectKey key,
                                           std::string data_key);

// The token of a login, which is repeated after argocd-server refused the token. A wrong password is
// tried at most every 70 s, because argocd-server locks the account after five failures in 300 s.
[[nodiscard]] Credential session_credential(Credential::Fetch log_in);

}  // namespace gitops::reporter
