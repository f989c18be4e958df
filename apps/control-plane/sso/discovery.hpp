#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

// The description that an identity provider publishes of itself (OpenID Connect Discovery 1.0), and the request that
// exchanges a code for an ID token (RFC 6749, section 4.1.3). Pure.
namespace gitops::control_plane_server::sso {

// Ways to send a client's secret to the token endpoint (OpenID Connect Core 1.0, section 9).
enum class ClientAuthentication : std::uint8_t { basic, post };

struct Discovery {
  std::string issuer;
  http::Url authorization_endpoint;
  http::Url token_endpoint;
  http::Url jwks_uri;
  std::optional<http::Url> end_session_endpoint;  // OpenID Connect RP-Initiated Logout 1.0
  ClientAuthentication authentication = ClientAuthentication::basic;
  // The provider names itself in every response to a browser (RFC 9207).
  bool names_itself = false;
};

// Returns why an issuer is refused, or an empty text. It has https, or http with an address of this machine.
std::string issuer_mistake(std::string_view issuer);
// Returns the address of the document.
Result<http::Url> discovery_url(const std::string& issuer);
// Reads the document. invalid_data: it is malformed, of another issuer, or lacks what a login needs.
Result<Discovery> read_discovery(const http::Response& response, const std::string& issuer);

struct Client {
  std::string id;
  Secret secret;
};
// Makes the request for the origin of token_endpoint.
http::Request token_request(const Discovery& discovery, const Client& client, std::string_view code,
                            std::string_view redirect_uri, std::string_view verifier);
// Returns the ID token of the response. Errors: forbidden when the provider refuses the code, unauthenticated when it
// refuses this client, unavailable for 429 and 5xx, protocol for everything else. Messages contain at most the error code
// of the response.
Result<Secret> read_token_response(const http::Response& response);

// Returns the address that ends the user's session at the provider; empty when it has none.
std::string end_session_url(const Discovery& discovery, const std::string& client_id,
                            const std::string& return_to);

}  // namespace gitops::control_plane_server::sso
