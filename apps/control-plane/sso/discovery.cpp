#include "control-plane/sso/discovery.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "control-plane/sso/strict_json.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kDocument = "the provider's discovery document";
constexpr std::string_view kWellKnown = "/.well-known/openid-configuration";
constexpr std::size_t kMaxCode = 64;  // characters of an error

bool is_of_this_machine(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

// Secrets and codes travel only under TLS, or within this machine.
bool is_protected(const http::Url& url) {
  return url.scheme == "https" || (url.scheme == "http" && is_of_this_machine(url.host));
}

Result<http::Url> endpoint(const Json& document, std::string_view name) {
  auto url = http::parse_url(string_at(document, {name}));
  if (!url || !is_protected(*url) || !url->userinfo.empty()) {
    return fail(ErrorCode::invalid_data,
                std::string(kDocument) + " has no https address as " + std::string(name));
  }
  return url;
}

// Basic is the default (Discovery 1.0, section 3).
Result<ClientAuthentication> authentication_of(const Json& document) {
  const auto& methods = value_at(document, {"token_endpoint_auth_methods_supported"});
  const auto has = [&methods](const char* name) {
    return methods.is_array() &&
           std::ranges::any_of(methods, [&](const Json& one) { return one == name; });
  };
  if (methods.is_null() || has("client_secret_basic")) return ClientAuthentication::basic;
  if (has("client_secret_post")) return ClientAuthentication::post;
  return fail(ErrorCode::invalid_data,
              std::string(kDocument) + " allows no client secret at the token endpoint");
}

bool is_json(const http::Response& response) {
  return http::equal_ignoring_case(http::media_type(response.headers), "application/json");
}

// Returns the error code of a response; "an error" when it has none in the form of RFC 6749, section 5.2.
std::string error_in(const http::Response& response) {
  const auto code = string_at(parse_json_object(response.body), {"error"});
  const bool is_code =
      !code.empty() && code.size() <= kMaxCode &&
      std::ranges::all_of(code, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  return is_code ? code : std::string("an error");
}

}  // namespace

std::string issuer_mistake(std::string_view issuer) {
  const auto url = http::parse_url(issuer);
  if (!url) return url.error().message;
  if (!is_protected(*url)) return "an issuer has https";
  if (!url->userinfo.empty() || !url->query.empty()) return "neither user nor query is allowed";
  return {};
}

Result<http::Url> discovery_url(const std::string& issuer) {
  auto url = http::parse_url(issuer);
  if (!url) return url;
  while (url->path.ends_with('/')) url->path.pop_back();
  url->path += kWellKnown;
  return url;
}

Result<Discovery> read_discovery(const http::Response& response, const std::string& issuer) {
  const auto wrong = [](std::string why) {
    return fail(ErrorCode::invalid_data, std::string(kDocument) + " " + std::move(why));
  };
  if (response.status != 200) return wrong("has status " + std::to_string(response.status));
  if (!is_json(response)) return wrong("is not application/json");
  const auto document = parse_strict_object(response.body, kDocument);
  if (!document) return std::unexpected(document.error());
  // Section 4.3: otherwise one provider could speak for another.
  if (string_at(*document, {"issuer"}) != issuer) return wrong("is of another issuer");
  Discovery found;
  found.issuer = issuer;
  for (const auto& [name, target] :
       {std::pair("authorization_endpoint", &found.authorization_endpoint),
        std::pair("token_endpoint", &found.token_endpoint),
        std::pair("jwks_uri", &found.jwks_uri)}) {
    auto url = endpoint(*document, name);
    if (!url) return std::unexpected(std::move(url.error()));
    *target = std::move(*url);
  }
  // Optional, and some providers name it without a value.
  const auto& end_session = value_at(*document, {"end_session_endpoint"});
  if (!end_session.is_null() && end_session != "") {
    auto url = endpoint(*document, "end_session_endpoint");
    if (!url) return std::unexpected(std::move(url.error()));
    found.end_session_endpoint = std::move(*url);
  }
  const auto authentication = authentication_of(*document);
  if (!authentication) return std::unexpected(authentication.error());
  found.authentication = *authentication;
  found.names_itself =
      value_at(*document, {"authorization_response_iss_parameter_supported"}) == true;
  return found;
}

http::Request token_request(const Discovery& discovery, const Client& client, std::string_view code,
                            std::string_view redirect_uri, std::string_view verifier) {
  http::Request request{.method = "POST",
                        .target = discovery.token_endpoint.path.empty()
                                      ? std::string("/")
                                      : discovery.token_endpoint.path,
                        .headers = {{"Accept", "application/json"},
                                    {"Content-Type", "application/x-www-form-urlencoded"}}};
  if (!discovery.token_endpoint.query.empty()) {
    request.target += "?" + discovery.token_endpoint.query;
  }
  std::vector<std::pair<std::string_view, std::string_view>> form{
      {"grant_type", "authorization_code"},
      {"code", code},
      {"redirect_uri", redirect_uri},
      {"code_verifier", verifier}};
  if (discovery.authentication == ClientAuthentication::basic) {
    // Both are encoded first (RFC 6749, section 2.3.1).
    request.headers.add("Authorization",
                        "Basic " + base64_encode(percent_encode(client.id) + ":" +
                                                 percent_encode(client.secret.reveal())));
  } else {
    form.emplace_back("client_id", client.id);
    form.emplace_back("client_secret", client.secret.reveal());
  }
  request.body = http::query_string(form);
  return request;
}

Result<Secret> read_token_response(const http::Response& response) {
  const auto failed = [](ErrorCode code, std::string why) {
    return fail(code, "the provider's token endpoint " + std::move(why));
  };
  if (response.status == 429 || response.status >= 500) {
    return failed(ErrorCode::unavailable, "has status " + std::to_string(response.status));
  }
  if (response.status != 200) {
    const auto error = error_in(response);
    if (error == "invalid_grant") return failed(ErrorCode::forbidden, "refused the code");
    if (error == "invalid_client" || error == "unauthorized_client") {
      return failed(ErrorCode::unauthenticated,
                    "refused the client: " + error + "; check client-id and client-secret-file");
    }
    return failed(ErrorCode::protocol,
                  "has status " + std::to_string(response.status) + ": " + error);
  }
  if (!is_json(response)) return failed(ErrorCode::protocol, "did not send application/json");
  const auto json = parse_strict_object(response.body, "the provider's token response");
  if (!json) return failed(ErrorCode::protocol, "sent malformed JSON");
  Secret token(string_at(*json, {"id_token"}));
  if (token.empty()) return failed(ErrorCode::protocol, "sent no ID token; check scopes");
  return token;
}

std::string end_session_url(const Discovery& discovery, const std::string& client_id,
                            const std::string& return_to) {
  if (!discovery.end_session_endpoint) return {};
  auto url = *discovery.end_session_endpoint;
  url.query +=
      (url.query.empty() ? "" : "&") +
      http::query_string({{"client_id", client_id}, {"post_logout_redirect_uri", return_to}});
  return url.to_string();
}

}  // namespace gitops::control_plane_server::sso
