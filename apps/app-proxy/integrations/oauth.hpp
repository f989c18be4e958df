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

// The login of a user at a Git host by OAuth 2.0 (RFC 6749, authorization code with PKCE, RFC 7636):
// what is asked, what is answered, and the state that travels through the user's browser. Pure.
namespace gitops::app_proxy::oauth {

// The Secrets that hold OAuth applications of Git hosts.
inline constexpr const char* kAppSelector = "codefresh_io_entity=git-pat-obtainer-sec";

// An OAuth application, as somebody has registered it at a Git host.
struct OauthApp {
  http::Url url;  // of the host's pages; no trailing slash, no query, no user
  std::string client_id;
  Secret client_secret;
};
// Reads the Secret of one: keys `url`, `clientId` and `clientSecret`; `appId` is for people. The
// message of an error names the Secret and quotes nothing of it.
Result<OauthApp> read_app(std::string_view object, PlainHttp plain);
// Whether it is an application of the host of this API root: scheme, host and port are the same, and
// the host's REST interface lies below the path of its pages.
bool is_for(const OauthApp& app, const ApiRoot& root);

// The provider that a path names: "github", "gitlab", "bitbucket-server", "gitea".
std::optional<ProviderKind> provider_of(std::string_view word);
// That word; empty for a provider without this login.
std::string_view word_of(ProviderKind kind);

// A PKCE verifier of 256 random bits, and the challenge that belongs to one (S256).
std::string new_verifier();
std::string challenge_of(std::string_view verifier);

// Where the user's browser is sent.
std::string authorize_url(ProviderKind kind, const OauthApp& app, std::string_view redirect_uri,
                          std::string_view state, std::string_view verifier);
// The request to the origin of app.url that exchanges a code for tokens.
http::Request code_request(ProviderKind kind, const OauthApp& app, std::string_view code,
                           std::string_view redirect_uri, std::string_view verifier);
// The same for a refresh token. An empty redirect_uri is not sent: most hosts need none.
http::Request refresh_request(ProviderKind kind, const OauthApp& app, const Secret& refresh_token,
                              std::string_view redirect_uri);

// The tokens that a host gave.
struct Grant {
  Secret access_token;
  Secret refresh_token;              // empty: there is none
  std::chrono::seconds lifetime{0};  // of the access token; 0: it does not expire
};
// Reads the answer to one of the requests above. Errors: integration_errors::kNotGranted, `forbidden`, for a refusal of
// the code or of the refresh token; `unavailable` for 429 and 5xx; `protocol` for everything else, as
// a page, a redirect, or JSON without a token. Of what the host says, messages hold the word of the
// error at most.
Result<Grant> read_grant(ProviderKind kind, const http::Response& response);
// The name that Git over HTTP wants beside such a token; empty: any, as the user's own.
std::string_view git_username(ProviderKind kind);

// A login that is under way: what the state in the browser says. It is sealed, so nobody but the
// runtime reads or writes one; each replica can read it.
struct Login {
  std::string id;  // one for each; set by open_login()
  std::string user_id;
  std::string user_name;
  bool is_admin = false;  // of the account, when the login began
  std::string account_id;
  std::string integration;
  ProviderKind kind = ProviderKind::github;
  std::string verifier;
  std::string browser;  // browser_mark() of the value in the browser's cookie
  WallTime until;       // then it is over
};
// The state, of letters that need no encoding in a URL. `unavailable` while there is no key.
Result<std::string> seal_login(const TokenSeal& seal, const Login& login);
// `invalid_argument` for what is no state of this runtime, or one that is over.
Result<Login> open_login(const TokenSeal& seal, std::string_view state, WallTime now);

// A value for the cookie that binds a login to a browser, and what the state knows of it.
std::string new_browser_value();
std::string browser_mark(std::string_view value);
// Whether a value belongs to the mark; takes as long wherever they differ.
bool is_browser(std::string_view mark, std::string_view value);

// Logins that came back: each one may do so once. Remembers them until they are over.
class UsedLogins {
 public:
  explicit UsedLogins(std::size_t most = 10'000) : most_(most) {}
  // `invalid_argument` for a login that was used before; `unavailable` when too many are remembered.
  Result<void> use(const Login& login, WallTime now);

 private:
  std::size_t most_;
  std::map<std::string, WallTime> used_;  // by id
};

}  // namespace gitops::app_proxy::oauth
