#pragma once

#include <string>

#include "app-proxy/integrations/oauth.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/http/client.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Requests tokens from Git hosts for users who logged in there, as the OAuth application in a
// Secret of the runtime's namespace. The Secret is read each time. Requests go only to the URL of
// that Secret, and redirects are not followed. Loop thread only; its dependencies outlive it.
class OauthClient {
 public:
  struct Options {
    std::string own_namespace = {};
    PlainHttp plain_http = PlainHttp::refused;
    // Address of the runtime for browsers; empty when it is unknown.
    std::string public_url = {};
  };
  // `http` has the TLS and proxy settings for Git hosts.
  OauthClient(k8s::Client& cluster, http::Client& http, Options options);

  // Returns the application for the host of an API root. `not_found`, with the Secret to create,
  // when there is none.
  Task<Result<oauth::OauthApp>> app_for(ApiRoot root, Deadline deadline);
  // Exchanges a code that the host has sent to redirect_uri() for tokens.
  Task<Result<oauth::Grant>> exchange(ProviderKind kind, oauth::OauthApp app, std::string code,
                                      std::string verifier, Deadline deadline);
  // Exchanges a refresh token for new tokens. The host may reject the old refresh token afterwards.
  Task<Result<oauth::Grant>> refresh(ApiRoot root, Secret refresh_token, Deadline deadline);

  // URL to which hosts send browsers back. `unavailable`, with the setting to set, when the
  // runtime's address is unknown.
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
