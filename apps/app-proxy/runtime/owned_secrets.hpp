#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app-proxy/identity/runtime_identity.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/http/url.hpp"

// Secrets that the runtime creates for itself and for its other programs, which wait for these
// names. Pure.
namespace gitops::app_proxy {

inline constexpr std::string_view kRuntimeSecret = "codefresh-token";
inline constexpr std::string_view kArgoCdTokenSecret = "argocd-token";
inline constexpr std::string_view kRepoCredsSecret = "runtime-repo-creds-secret";

// Parses the Secret codefresh-token.
RuntimeSecret read_runtime_secret(std::string_view object);
// Parses the Secret argocd-token; empty when there is none.
Secret read_argocd_token(std::string_view object);

// Returns a Secret as JSON. `before` is the stored object; its other contents are kept.
std::string runtime_secret_object(std::string_view ns, const RuntimeSecret& content,
                                  std::string_view before = {});
std::string argocd_token_object(std::string_view ns, const Secret& token,
                                std::string_view before = {});

// Credential with which Argo CD reads the repositories of a Git host.
struct RepoCreds {
  std::string url;  // of the host, with a trailing slash
  std::string username;
  Secret password;
};
// Returns the scheme and the host of a repository. Argo CD matches the URL of a Secret as a prefix:
// the slash keeps the token from hosts whose name only begins in the same way.
std::string repo_creds_url(const http::Url& repository);
// Returns the Secret with which Argo CD in that namespace reads repositories, as JSON.
std::string repo_creds_object(std::string_view ns, const RepoCreds& creds,
                              std::string_view before = {});
enum class RepoCredsStep {
  keep,   // it is as wanted
  write,  // it is missing, or differs
  leave,  // a Secret of that name that the runtime did not create
};
// Decides about the Secret. `stored` is the object; empty when there is none.
RepoCredsStep repo_creds_step(std::string_view stored, const RepoCreds& wanted);

// Decision about codefresh-token.
enum class SecretStep {
  keep,    // use the stored token
  write,   // store the known token, and add missing parts
  enroll,  // register the runtime at the control plane, and store the new token
  wait,    // wait for another replica, or for a user token
};
struct SecretView {
  RuntimeSecret stored = {};  // empty: there is no Secret
  RuntimeSecret known = {};   // of this process
  bool has_user_token = false;
  bool is_leader = false;
  // The control plane has refused the stored token repeatedly, since its runtime was deleted there.
  bool is_refused = false;
};
SecretStep secret_step(const SecretView& view);

}  // namespace gitops::app_proxy
