#include "control-plane/sso/authorization.hpp"

#include <algorithm>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/http/url.hpp"

namespace gitops::control_plane_server::sso {
namespace {

constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kMaxPath = 1'024;
constexpr std::size_t kMaxValue = 4'096;  // of a callback's parameter

std::string derived(const Secret& browser, std::string_view state, std::string_view purpose) {
  return base64url_encode(hkdf_sha256(browser.reveal(), state, purpose, kRandomBytes).reveal());
}

}  // namespace

Secret new_login_value() {
  return Secret(base64url_encode(random_bytes(kRandomBytes)));
}

std::string login_digest(std::string_view value) {
  return std::string(bytes_of(sha256(value)));
}

LoginSecrets login_secrets(const Secret& browser, std::string_view state) {
  return {.nonce = derived(browser, state, "nonce"),
          .verifier = derived(browser, state, "code verifier")};
}

std::string return_path(std::string_view wanted) {
  // "//host" and "/\host" are addresses of other hosts for a browser.
  const bool is_path = wanted.starts_with('/') && !wanted.starts_with("//") &&
                       wanted.size() <= kMaxPath &&
                       std::ranges::all_of(wanted, [](unsigned char c) {
                         return c > 0x20 && c < 0x7f && c != '\\' && c != '"' && c != '<';
                       });
  return is_path ? std::string(wanted) : "/";
}

std::string authorization_url(const Discovery& discovery, const AuthorizationRequest& request) {
  const auto challenge = base64url_encode(bytes_of(sha256(request.secrets.verifier)));
  auto url = discovery.authorization_endpoint;
  url.query += (url.query.empty() ? "" : "&") + http::query_string({
                                                    {"response_type", "code"},
                                                    {"client_id", request.client_id},
                                                    {"redirect_uri", request.redirect_uri},
                                                    {"scope", request.scopes},
                                                    {"state", request.state},
                                                    {"nonce", request.secrets.nonce},
                                                    {"code_challenge", challenge},
                                                    {"code_challenge_method", "S256"},
                                                });
  return url.to_string();
}

Result<Callback> read_callback(std::string_view query) {
  const auto value = [query](std::string_view name) { return http::query_parameter(query, name); };
  Callback callback{.state = value("state"),
                    .code = value("code"),
                    .issuer = value("iss"),
                    .is_refusal = !value("error").empty()};
  const bool is_complete =
      !callback.state.empty() && (!callback.code.empty() || callback.is_refusal);
  if (!is_complete || callback.state.size() > kMaxValue || callback.code.size() > kMaxValue) {
    return fail(ErrorCode::invalid_argument, "this is no response of a provider to a login");
  }
  return callback;
}

Result<void> check_sender(const Callback& callback, const Discovery& discovery) {
  const bool is_missing = callback.issuer.empty() && discovery.names_itself;
  if (is_missing || (!callback.issuer.empty() && callback.issuer != discovery.issuer)) {
    return fail(ErrorCode::forbidden, "another provider sent the response");
  }
  return {};
}

}  // namespace gitops::control_plane_server::sso
