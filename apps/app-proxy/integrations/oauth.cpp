#include "app-proxy/integrations/oauth.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/text.hpp"

namespace gitops::app_proxy::oauth {
namespace {

constexpr std::string_view kStatePurpose = "login at a Git host";
constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kKeyIdSize = 16;
constexpr std::size_t kMaxState = 4'096;
constexpr std::size_t kMaxName = 100;
constexpr std::size_t kMaxToken = 4'096;                  // as for registered tokens
constexpr std::size_t kMaxValue = 4'096;                  // per key of the Secret
constexpr std::size_t kMaxWord = 64;                      // of an error
constexpr std::int64_t kMaxLifetime = 10 * 366 * 86'400;  // seconds; a longer one means no expiry

struct Endpoints {
  const char* authorize;
  const char* token;
  const char* scope;
};

// Endpoints and scopes, from docs.github.com/apps/oauth-apps, docs.gitlab.com/api/oauth2,
// docs.gitea.com/development/oauth2-provider and "Bitbucket OAuth 2.0 provider API" of Bitbucket
// Data Center. The scopes are those of a token that a user registers by hand.
Endpoints endpoints_of(ProviderKind kind) {
  switch (kind) {
    case ProviderKind::gitlab:
      return {"/oauth/authorize", "/oauth/token", "api"};
    case ProviderKind::bitbucket_server:
      return {"/rest/oauth2/latest/authorize", "/rest/oauth2/latest/token", "REPO_WRITE"};
    case ProviderKind::gitea:
      return {"/login/oauth/authorize", "/login/oauth/access_token",
              "write:repository write:user read:organization"};
    case ProviderKind::github:
    case ProviderKind::bitbucket:
      break;
  }
  return {"/login/oauth/authorize", "/login/oauth/access_token", "repo"};
}

// Returns a value of the Secret without the line end that editors add.
std::string value_of(const nlohmann::json& secret, std::string_view key) {
  const auto bytes = base64_decode(string_at(secret, {"data", key}));
  if (!bytes) return {};
  return std::string(trimmed(*bytes));
}

bool is_plain(std::string_view text) {
  return !text.empty() && text.size() <= kMaxValue &&
         std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

http::Request form(const OauthApp& app, const char* path, std::string body) {
  return {.method = "POST",
          .target = http::join_target(app.url, path),
          .headers = {{"Accept", "application/json"},
                      {"Content-Type", "application/x-www-form-urlencoded"}},
          .body = std::move(body)};
}

std::unexpected<Error> strange(std::string what) {
  return fail(ErrorCode::protocol, "the Git host's answer to the login " + std::move(what) +
                                       "; check url of the OAuth application");
}

// Returns the code of an error, if it has the form of one; hosts may send any text.
std::string word_in(const nlohmann::json& json) {
  auto word = string_at(json, {"error"});
  const bool is_word =
      !word.empty() && word.size() <= kMaxWord &&
      std::ranges::all_of(word, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  return is_word ? word : std::string("an error");
}

// Checks an error code: RFC 6749 section 5.2, and the hosts' own codes for a code and a refresh
// token. Gitea sends, for an unknown or expired one, the code that others send for a client without
// permission.
bool is_refusal(ProviderKind kind, std::string_view word) {
  if (kind == ProviderKind::gitea && word == "unauthorized_client") return true;
  return word == "invalid_grant" || word == "bad_verification_code" || word == "bad_refresh_token";
}

bool is_token(std::string_view text) {
  return !text.empty() && text.size() <= kMaxToken && http::is_field_value(text);
}

// Returns the number, which some hosts send as a text.
std::int64_t seconds_in(const nlohmann::json& json) {
  if (const auto number = integer_at(json, {"expires_in"})) return *number;
  const auto text = string_at(json, {"expires_in"});
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos)
    return 0;
  return std::stoll(text);
}

}  // namespace

Result<OauthApp> read_app(std::string_view object, PlainHttp plain) {
  const auto secret = parse_json_object(object);
  const auto wrong = [&](const char* what) {
    return fail(ErrorCode::invalid_data, "Secret " + string_at(secret, {"metadata", "name"}) +
                                             " of an OAuth application: " + what);
  };
  OauthApp app{.url = {},
               .client_id = value_of(secret, "clientId"),
               .client_secret = Secret(value_of(secret, "clientSecret"))};
  if (!is_plain(app.client_id)) return wrong("clientId is missing, or is none");
  if (!is_plain(app.client_secret.reveal())) return wrong("clientSecret is missing, or is none");
  auto url = http::parse_url(value_of(secret, "url"));
  if (!url) return wrong("url is missing, or is none");
  if (url->scheme != "https" && (url->scheme != "http" || plain == PlainHttp::refused)) {
    return wrong("url does not begin with https://");
  }
  if (!url->userinfo.empty() || !url->query.empty()) return wrong("url holds a user or a query");
  while (url->path.ends_with('/')) url->path.pop_back();
  if (url->path.contains("//") || url->path.contains("/.") || url->path.contains('%')) {
    return wrong("the path of url is not plain");
  }
  app.url = std::move(*url);
  return app;
}

bool is_for(const OauthApp& app, const ApiRoot& root) {
  if (app.url.scheme != root.url.scheme || app.url.port != root.url.port) return false;
  if (app.url.host != root.web_host()) return false;
  // An API on a separate host is independent of the path of pages.
  if (root.web_host() != root.url.host) return app.url.path.empty();
  return root.url.path.starts_with(app.url.path + "/");
}

std::optional<ProviderKind> provider_of(std::string_view word) {
  for (const auto kind : {ProviderKind::github, ProviderKind::gitlab,
                          ProviderKind::bitbucket_server, ProviderKind::gitea}) {
    if (word == word_of(kind)) return kind;
  }
  return std::nullopt;
}

std::string_view word_of(ProviderKind kind) {
  switch (kind) {
    case ProviderKind::github:
      return "github";
    case ProviderKind::gitlab:
      return "gitlab";
    case ProviderKind::bitbucket_server:
      return "bitbucket-server";
    case ProviderKind::gitea:
      return "gitea";
    case ProviderKind::bitbucket:
      break;
  }
  return {};
}

std::string new_verifier() {
  return base64url_encode(random_bytes(kRandomBytes));
}

std::string challenge_of(std::string_view verifier) {
  const auto sum = sha256(verifier);
  return base64url_encode(bytes_of(sum));
}

std::string authorize_url(ProviderKind kind, const OauthApp& app, std::string_view redirect_uri,
                          std::string_view state, std::string_view verifier) {
  const auto endpoints = endpoints_of(kind);
  const auto challenge = challenge_of(verifier);
  auto url = app.url;
  url.path += endpoints.authorize;
  // GitHub Apps have permissions, and ignore the scope.
  url.query = http::query_string({{"client_id", app.client_id},
                                  {"response_type", "code"},
                                  {"redirect_uri", redirect_uri},
                                  {"scope", endpoints.scope},
                                  {"state", state},
                                  {"code_challenge", challenge},
                                  {"code_challenge_method", "S256"}});
  return url.to_string();
}

http::Request code_request(ProviderKind kind, const OauthApp& app, std::string_view code,
                           std::string_view redirect_uri, std::string_view verifier) {
  return form(app, endpoints_of(kind).token,
              http::query_string({{"grant_type", "authorization_code"},
                                  {"client_id", app.client_id},
                                  {"client_secret", app.client_secret.reveal()},
                                  {"code", code},
                                  {"redirect_uri", redirect_uri},
                                  {"code_verifier", verifier}}));
}

http::Request refresh_request(ProviderKind kind, const OauthApp& app, const Secret& refresh_token,
                              std::string_view redirect_uri) {
  std::vector<std::pair<std::string_view, std::string_view>> fields = {
      {"grant_type", "refresh_token"},
      {"client_id", app.client_id},
      {"client_secret", app.client_secret.reveal()},
      {"refresh_token", refresh_token.reveal()}};
  if (!redirect_uri.empty()) fields.emplace_back("redirect_uri", redirect_uri);
  return form(app, endpoints_of(kind).token, http::query_string(fields));
}

Result<Grant> read_grant(ProviderKind kind, const http::Response& response) {
  const int status = response.status;
  if (status == 429 || status >= 500) {
    return std::unexpected(Error{.code = ErrorCode::unavailable,
                                 .message = "the Git host answered the login with " +
                                            std::to_string(status) + "; try again later",
                                 .http_status = status});
  }
  if (status >= 300 && status < 400) return strange("is a redirect, which is not followed");
  const auto json =
      http::equal_ignoring_case(http::media_type(response.headers), "application/json")
          ? parse_json_object(response.body)
          : nlohmann::json();
  // GitHub sends errors with status 200.
  if (json.is_object() && json.contains("error")) {
    const auto word = word_in(json);
    if (is_refusal(kind, word)) {
      return std::unexpected(
          Error{.code = ErrorCode::forbidden,
                .message = "the Git host does not accept the login (" + word + ")",
                .subcode = integration_errors::kNotGranted});
    }
    return fail(ErrorCode::protocol, "the Git host refused the login with " + word +
                                         "; check clientId, clientSecret and the callback URL of "
                                         "the OAuth application");
  }
  if (status < 200 || status >= 300) return strange("has status " + std::to_string(status));
  if (!json.is_object()) return strange("is not JSON");
  Grant grant{.access_token = Secret(string_at(json, {"access_token"})),
              .refresh_token = Secret(string_at(json, {"refresh_token"})),
              .lifetime = {}};
  if (!is_token(grant.access_token.reveal())) return strange("holds no token");
  const auto type_of_token = string_at(json, {"token_type"});
  if (!type_of_token.empty() && !http::equal_ignoring_case(type_of_token, "bearer")) {
    return strange("holds a token of another type than bearer");
  }
  if (!grant.refresh_token.empty() && !is_token(grant.refresh_token.reveal())) {
    return strange("holds a refresh token that cannot be sent");
  }
  const auto lifetime = seconds_in(json);
  if (lifetime > 0 && lifetime < kMaxLifetime) grant.lifetime = std::chrono::seconds(lifetime);
  return grant;
}

// GitLab accepts such tokens with this name only: docs.gitlab.com/api/oauth2.
std::string_view git_username(ProviderKind kind) {
  return kind == ProviderKind::gitlab ? "oauth2" : "";
}

Result<std::string> seal_login(const TokenSeal& seal, const Login& login) {
  const Secret text(to_text({{"user", login.user_id},
                             {"name", login.user_name.substr(0, kMaxName)},
                             {"admin", login.is_admin},
                             {"account", login.account_id},
                             {"integration", login.integration},
                             {"provider", word_of(login.kind)},
                             {"verifier", login.verifier},
                             {"browser", login.browser},
                             {"until", login.until.time_since_epoch().count()}}));
  const auto sealed = seal.seal_for(kStatePurpose, text);
  if (!sealed) return std::unexpected(sealed.error());
  return base64url_encode(sealed->key_id + sealed->nonce + sealed->text);
}

Result<Login> open_login(const TokenSeal& seal, std::string_view state, WallTime now) {
  const auto invalid = fail(ErrorCode::invalid_argument,
                            "this is not a login that the runtime has begun; begin again");
  if (state.size() > kMaxState) return invalid;
  const auto bytes = base64url_decode(state);
  if (!bytes || bytes->size() <= kKeyIdSize + kSealNonceSize) return invalid;
  const SealedToken sealed{.key_id = bytes->substr(0, kKeyIdSize),
                           .nonce = bytes->substr(kKeyIdSize, kSealNonceSize),
                           .text = bytes->substr(kKeyIdSize + kSealNonceSize)};
  const auto text = seal.open_for(kStatePurpose, sealed);
  if (!text) return invalid;
  const auto json = parse_json_object(text->reveal());
  const auto kind = provider_of(string_at(json, {"provider"}));
  const auto until = integer_at(json, {"until"});
  if (!kind || !until) return invalid;
  Login login{.id = hex_encode(sealed.nonce),
              .user_id = string_at(json, {"user"}),
              .user_name = string_at(json, {"name"}),
              .is_admin = value_at(json, {"admin"}) == true,
              .account_id = string_at(json, {"account"}),
              .integration = string_at(json, {"integration"}),
              .kind = *kind,
              .verifier = string_at(json, {"verifier"}),
              .browser = string_at(json, {"browser"}),
              .until = WallTime(std::chrono::milliseconds(*until))};
  if (login.user_id.empty() || login.browser.empty()) return invalid;
  if (login.until <= now) {
    return fail(ErrorCode::invalid_argument, "this login took too long; begin again");
  }
  return login;
}

std::string new_browser_value() {
  return base64url_encode(random_bytes(kRandomBytes));
}

std::string browser_mark(std::string_view value) {
  const auto sum = sha256(value);
  return hex_encode(bytes_of(sum));
}

bool is_browser(std::string_view mark, std::string_view value) {
  return !value.empty() && equal_in_constant_time(mark, browser_mark(value));
}

Result<void> UsedLogins::use(const Login& login, WallTime now) {
  if (used_.contains(login.id)) {
    return fail(ErrorCode::invalid_argument, "this login was used before; begin again");
  }
  if (used_.size() >= most_) {
    std::erase_if(used_, [&](const auto& entry) { return entry.second <= now; });
  }
  if (used_.size() >= most_) {
    return fail(ErrorCode::unavailable, "too many logins at the same time; try again later");
  }
  used_.emplace(login.id, login.until);
  return {};
}

}  // namespace gitops::app_proxy::oauth
