#pragma once

#include <string>

#include "app-proxy/integrations/oauth.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/http/client.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Asks Git hosts for the tokens of users who logged in there, as the OAuth application that a Secret
// of the runtime's namespace names. The Secret is read again each time. Nothing is sent elsewhere than
// to the URL of that Secret, and no redirect is followed. Loop thread only; its dependencies outlive it.
class OauthClient {
 public:
  struct Options {
    std::string own_namespace = {};
    PlainHttp plain_http = PlainHttp::refused;
    // The address of the runtime, as browsers reach it; empty: it is not known.
    std::string public_url = {};
  };
  // `http` has the TLS and proxy settings for Git hosts.
  OauthClient(k8s::Client& cluster, http::Client& http, Options options);

  // The application for the host of an API root. `not_found`, with what to make, when there is none.
  Task<Result<oauth::OauthApp>> app_for(ApiRoot root, Deadline deadline);
  // The tokens for a code that the host has sent to redirect_uri().
  Task<Result<oauth::Grant>> exchange(ProviderKind kind, oauth::OauthApp app, std::string code,
                                      std::string verifier, Deadline deadline);
  // The tokens that follow; the host may accept the old refresh token no more.
  Task<Result<oauth::Grant>> refresh(ApiRoot root, Secret refresh_token, Deadline deadline);

  // Where hosts send browsers back to. `unavailable`, with what to set, when the runtime does not
  // know its address.
  [[nodiscard]] Result<http::Url> redirect_uri(ProviderKind kind) const;

 private:
  Task<Result<oauth::Grant>> ask(ProviderKind kind, oauth::OauthApp app, http::Request request,
                                 Deadline deadline);

  k8s::Client& cluster_;
  http::Client& http_;
  Options options_;
  RepeatFilter unreadable_{std::chrono::minutes(10)};
  Log log_{"git-logins"};
};

}  // namespace gitops::app_proxy
