#pragma once

#include <cstdint>
#include <string>

#include "common/core/credential.hpp"
#include "k8s-client/client.hpp"

// Tokens for argocd-server that are neither fixed nor in a file.
namespace gitops::reporter {

// A token in a key of a Secret, which is read every minute and after argocd-server refused the token.
// Needs the permission to get that Secret. `client` outlives it.
[[nodiscard]] Credential secret_credential(k8s::Client& client, k8s::ObjectKey key,
                                           std::string data_key);

// The token of a login, which is repeated after argocd-server refused the token. argocd-server refuses
// all logins to an account, also with the right password, after five failures that are at most 300 s
// apart. So a wrong password is tried every 310 s, multiplied by the number of `replicas`, which share
// the account.
[[nodiscard]] Credential session_credential(Credential::Fetch log_in, std::uint32_t replicas);

}  // namespace gitops::reporter
