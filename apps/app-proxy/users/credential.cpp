#include "app-proxy/users/credential.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMax = 8 * 1024;
constexpr std::string_view kAuthorization = "Authorization";
constexpr std::string_view kAccessToken = "x-access-token";
constexpr std::string_view kCookie = "Cookie";
constexpr std::string_view kScheme = "Bearer";

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

RequestCredential malformed() {
  return {.kind = RequestCredential::Kind::malformed};
}

RequestCredential token(std::string_view header, std::string_view value) {
  value = trimmed(value);
  // "Bearer" without a token is malformed, too.
  const auto scheme = value.substr(0, value.find(' '));
  if (header == kAuthorization && http::equal_ignoring_case(scheme, kScheme)) {
    value = trimmed(value.substr(scheme.size()));
  }
  if (value.empty() || value.size() > kMax || !is_plain(value)) return malformed();
  return {.kind = RequestCredential::Kind::token,
          .sent = {.header = std::string(header), .value = Secret(std::string(value))}};
}

std::size_t count(const http::Headers& headers, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      headers, [&](const auto& field) { return http::equal_ignoring_case(field.first, name); }));
}

}  // namespace

RequestCredential credential_of(const http::Headers& headers) {
  for (const auto name : {kAuthorization, kAccessToken}) {
    const auto given = count(headers, name);
    if (given > 1) return malformed();
    if (given == 1) return token(name, *headers.find(name));
  }
  const auto given = count(headers, kCookie);
  if (given == 0) return {};
  const auto cookie = trimmed(*headers.find(kCookie));
  if (given > 1 || cookie.empty() || cookie.size() > kMax || !http::is_field_value(cookie)) {
    return malformed();
  }
  return {.kind = RequestCredential::Kind::cookie,
          .sent = {.header = std::string(kCookie), .value = Secret(std::string(cookie))}};
}

RequestCredential credential_of_payload(std::string_view payload) {
  if (payload.size() > 2 * kMax) return malformed();
  const auto json = nlohmann::json::parse(payload, nullptr, false);
  if (!json.is_object()) return {};
  http::Headers fields;
  const auto take = [&fields](const nlohmann::json& object) {
    for (const auto& [name, value] : object.items()) {
      const bool known = http::equal_ignoring_case(name, kAuthorization) ||
                         http::equal_ignoring_case(name, kAccessToken);
      if (known && value.is_string()) fields.add(name, value.get<std::string>());
    }
  };
  take(json);
  if (const auto headers = json.find("headers"); headers != json.end() && headers->is_object()) {
    take(*headers);
  }
  return credential_of(fields);
}

CredentialHash::CredentialHash() : key_(random_bytes(32)) {}

Sha256Sum CredentialHash::of(const SentCredential& credential) const {
  HmacSha256 hash(key_.reveal());
  hash.add(credential.header);
  hash.add(std::string_view("\0", 1));
  hash.add(credential.value.reveal());
  return hash.finish();
}

}  // namespace gitops::app_proxy
