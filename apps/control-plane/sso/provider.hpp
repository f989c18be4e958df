#pragma once

#include <string>

#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/status_report.hpp"
#include "common/http/client.hpp"
#include "control-plane/sso/authorization.hpp"
#include "control-plane/sso/cached_document.hpp"
#include "control-plane/sso/discovery.hpp"
#include "control-plane/sso/id_token.hpp"
#include "control-plane/sso/jwks.hpp"
#include "control-plane/sso/provider_settings.hpp"

namespace gitops::control_plane_server::sso {

// One identity provider as this server's peer: its discovery document and its keys, which are kept for an hour, and its
// token endpoint. Redirects are not followed, and responses are bounded. The subcodes of errors are those of
// login_store.hpp. Loop thread only; it outlives its calls.
class Provider {
 public:
  struct Options {
    ProviderSettings settings;
    std::string redirect_uri;  // where it sends browsers back
    http::ProxySettings proxy = {};
  };
  // `names` outlives it.
  Provider(const Executor& executor, net::Resolver& names, Options options);

  // Returns the address to which a browser is sent to log in.
  Task<Result<std::string>> authorization_address(Secret browser, std::string state,
                                                  Deadline deadline);
  // Exchanges the code of a callback for an ID token and checks that.
  Task<Result<Claims>> redeem(Callback callback, LoginSecrets secrets, Deadline deadline);
  // Returns the address that ends the user's session at the provider; empty when it has none, or cannot be asked.
  Task<std::string> end_session_address(std::string return_to, Deadline deadline);

  [[nodiscard]] const ProviderSettings& settings() const { return options_.settings; }
  [[nodiscard]] StatusEntry status() const;
  // Closes idle connections.
  void close() { client_.close_idle(); }

 private:
  Task<Result<Discovery>> read_document(Deadline deadline);
  Task<Result<JwkSet>> read_keys(http::Url url, Deadline deadline);
  Task<Result<CachedDocument<Discovery>::Pointer>> document(Deadline deadline);
  Task<Result<CachedDocument<JwkSet>::Pointer>> keys(const Discovery& discovery,
                                                     CachedDocument<JwkSet>::Need need,
                                                     Deadline deadline);
  Task<Result<http::Response>> get(http::Url url, Deadline deadline);
  Task<Result<Secret>> exchange(const Discovery& discovery, std::string code, std::string verifier,
                                Deadline deadline);
  Task<Result<Claims>> check(const Discovery& discovery, const Secret& token, std::string nonce,
                             Deadline deadline);
  // Logs the error for the administrator, and returns it with a subcode.
  std::unexpected<Error> refused(std::string_view subcode, Error error);

  Options options_;
  http::Client client_;
  Credential secret_;
  CachedDocument<Discovery> document_;
  CachedDocument<JwkSet> keys_;
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Log log_{"sso"};
};

}  // namespace gitops::control_plane_server::sso
