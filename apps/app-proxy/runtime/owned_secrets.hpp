#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app-proxy/identity/runtime_identity.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/http/url.hpp"

// The Secrets that the runtime makes for itself and for its other programs, which wait for these names. Pure.
namespace gitops::app_proxy {

inline constexpr std::string_view kRuntimeSecret = "codefresh-token";
inline constexpr std::string_view kArgoCdTokenSecret = "argocd-token";
inline constexpr std::string_view kRepoCredsSecret = "runtime-repo-creds-secret";

// Of the Secret codefresh-token.
RuntimeSecret read_runtime_secret(std::string_view object);
// Of the Secret argocd-token; empty when there is none.
Secret read_argocd_token(std::string_view object);

// A Secret as JSON. With `before`, the stored object, whose other contents stay.
std::string runtime_secret_object(std::string_view ns, const RuntimeSecret& content,
                                  std::string_view before = {});
std::string argocd_token_object(std::string_view ns, const Secret& token,
                                std::string_view before = {});

// By what Argo CD reads the repositories of a Git host.
struct RepoCreds {
  std::string url;  // of the host, with a slash at the end
  std::string username;
  Secret password;
};
// The scheme and the host of a repository. Argo CD takes the URL of a Secret for the beginning of the URLs it is meant
// for: the slash keeps the token from hosts whose name only begins in the same way.
std::string repo_creds_url(const http::Url& repository);
// The Secret by which Argo CD in that namespace reads repositories, as JSON.
std::string repo_creds_object(std::string_view ns, const RepoCreds& creds,
                              std::string_view before = {});
enum class RepoCredsStep {
  keep,   // it is as it should be
  write,  // it is missing, or differs
  leave,  // a Secret of that name that we did not make
};
// `stored`: the object; empty: there is none.
RepoCredsStep repo_creds_step(std::string_view stored, const RepoCreds& wanted);

// What is to be done about codefresh-token.
enum class SecretStep {
  keep,    // what is stored is used
  write,   // what is known is stored, with what is missing
  enroll,  // the runtime registers itself at the control plane; the new token is stored
  wait,    // for another replica, or for a token of a user
};
struct SecretView {
  RuntimeSecret stored = {};  // empty: there is no Secret
  RuntimeSecret known = {};   // of this process
  bool has_user_token = false;
  bool is_leader = false;
  // The control plane has refused the stored token again and again: its runtime was deleted there.
  bool is_refused = false;
};
SecretStep secret_step(const SecretView& view);

}  // namespace gitops::app_proxy
