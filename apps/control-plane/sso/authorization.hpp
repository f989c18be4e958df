#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "control-plane/sso/discovery.hpp"

// The way of a user's browser to an identity provider and back (OpenID Connect Core 1.0, section 3.1.2): authorization
// code with PKCE (RFC 7636), state and nonce. Pure.
//
// The browser holds a random value in a cookie. The state is another random value, which travels in addresses. Nonce and
// verifier are derived from both, so the server stores neither, and an address that was sent to somebody else is of no
// use without the cookie.
namespace gitops::control_plane_server::sso {

inline constexpr std::chrono::minutes kLoginTime{10};  // from the beginning of a login to its end

// A login that began, as the server stores it under the digest of its state.
struct PendingLogin {
  std::string provider;
  std::string browser;    // digest of the value in the browser's cookie
  std::string return_to;  // path of this server
};

// Returns a new random value, for a cookie or a state: 43 characters that need no encoding.
Secret new_login_value();
// Returns the digest under which a value is stored, 32 bytes.
std::string login_digest(std::string_view value);

struct LoginSecrets {
  std::string nonce;
  std::string verifier;  // of PKCE
};
// Derives the secrets of one login.
LoginSecrets login_secrets(const Secret& browser, std::string_view state);

// Returns the path to which a login returns: `wanted`, or "/" when that is not a path of this server.
std::string return_path(std::string_view wanted);

struct AuthorizationRequest {
  std::string client_id;
  std::string redirect_uri;
  std::string scopes;  // separated by blanks; "openid" is one of them
  std::string state;
  LoginSecrets secrets;
};
// Returns the address to which the browser is sent.
std::string authorization_url(const Discovery& discovery, const AuthorizationRequest& request);

// The response of a provider, which comes with the browser.
struct Callback {
  std::string state;
  std::string code;
  std::string issuer;  // RFC 9207; empty: not sent
  bool is_refusal = false;
};
// Reads the query of a callback. invalid_argument: there is no state, or neither a code nor an error.
Result<Callback> read_callback(std::string_view query);

// Checks who sent the browser (RFC 9207, section 2.4). forbidden: another provider.
Result<void> check_sender(const Callback& callback, const Discovery& discovery);

}  // namespace gitops::control_plane_server::sso
