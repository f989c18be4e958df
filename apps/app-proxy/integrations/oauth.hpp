#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/integrations/token_seal.hpp"
#include "app-proxy/providers/api_root.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/core/time.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

// The login of a user at a Git host by OAuth 2.0 (RFC 6749, authorization code with PKCE, RFC
// 7636): requests, responses, and the state that travels through the user's browser. Pure.
namespace gitops::app_proxy::oauth {

// Label selector of the Secrets that hold OAuth applications of Git hosts.
inline constexpr const char* kAppSelector = "codefresh_io_entity=git-pat-obtainer-sec";

// An OAuth application that is registered at a Git host.
struct OauthApp {
  http::Url url;  // of the host's pages; no trailing slash, no query, no user
  std::string client_id;
  Secret client_secret;
};
// Parses the Secret of an application: keys `url`, `clientId` and `clientSecret`; `appId` is
// informational. Errors name the Secret and contain nothing of it.
Result<OauthApp> read_app(std::string_view object, PlainHttp plain);
// Checks that an application belongs to the host of this API root: scheme, host and port are equal,
// and the host's REST interface is below the path of its pages.
bool is_for(const OauthApp& app, const ApiRoot& root);

// Returns the provider for a path segment: "github", "gitlab", "bitbucket-server", "gitea".
std::optional<ProviderKind> provider_of(std::string_view word);
// Returns that segment; empty for a provider without this login.
std::string_view word_of(ProviderKind kind);

// Returns a PKCE verifier of 256 random bits, and the challenge for a verifier (S256).
std::string new_verifier();
std::string challenge_of(std::string_view verifier);

// Returns the URL to which the user's browser is sent.
std::string authorize_url(ProviderKind kind, const OauthApp& app, std::string_view redirect_uri,
                          std::string_view state, std::string_view verifier);
// Builds the request to the origin of app.url that exchanges a code for tokens.
http::Request code_request(ProviderKind kind, const OauthApp& app, std::string_view code,
                           std::string_view redirect_uri, std::string_view verifier);
// Builds the request that exchanges a refresh token. An empty redirect_uri is not sent: most hosts
// need none.
http::Request refresh_request(ProviderKind kind, const OauthApp& app, const Secret& refresh_token,
                              std::string_view redirect_uri);

// Tokens from a host.
struct Grant {
  Secret access_token;
  Secret refresh_token;              // empty: none
  std::chrono::seconds lifetime{0};  // of the access token; 0: it does not expire
};
// Parses the response to one of the requests above. Errors: integration_errors::kNotGranted,
// `forbidden`, when the host refuses the code or the refresh token; `unavailable` for 429 and 5xx;
// `protocol` for everything else, as a page, a redirect, or JSON without a token. Messages contain
// at most the error code of the host's response.
Result<Grant> read_grant(ProviderKind kind, const http::Response& response);
// User name for Git over HTTP with such a token; empty when any name works, as the user's own.
std::string_view git_username(ProviderKind kind);

// State of a login in progress, which the browser holds. It is sealed, so only the runtime can read
// or write it; each of its replicas can.
struct Login {
  std::string id;  // unique; set by open_login()
  std::string user_id;
  std::string user_name;
  bool is_admin = false;  // of the account, when the login began
  std::string account_id;
  std::string integration;
  ProviderKind kind = ProviderKind::github;
  std::string verifier;
  std::string browser;  // browser_mark() of the value in the browser's cookie
  WallTime until;       // expiry
};
// Seals the state, in characters that need no encoding in a URL. `unavailable` while there is no
// key.
Result<std::string> seal_login(const TokenSeal& seal, const Login& login);
// Opens a state. `invalid_argument` when it is not of this runtime, or has expired.
Result<Login> open_login(const TokenSeal& seal, std::string_view state, WallTime now);

// Returns a new value for the cookie that binds a login to a browser, and the mark of a value for
// the state.
std::string new_browser_value();
std::string browser_mark(std::string_view value);
// Compares a value with a mark, in constant time.
bool is_browser(std::string_view mark, std::string_view value);

// Completed logins. Each login may complete once. Entries are kept until the login expires.
class UsedLogins {
 public:
  explicit UsedLogins(std::size_t most = 10'000) : most_(most) {}
  // Marks a login as used. `invalid_argument` when it was used before; `unavailable` when too many
  // are remembered.
  Result<void> use(const Login& login, WallTime now);

 private:
  std::size_t most_;
  std::map<std::string, WallTime> used_;  // by id
};

}  // namespace gitops::app_proxy::oauth
