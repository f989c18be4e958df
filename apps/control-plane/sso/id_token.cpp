#include "control-plane/sso/id_token.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "common/http/message.hpp"
#include "control-plane/sso/strict_json.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxKeyId = 256;
constexpr std::size_t kMaxSubject = 255;  // OpenID Connect Core 1.0, section 2
constexpr std::size_t kMaxText = 512;     // of another claim
constexpr std::size_t kMaxGroups = 2'000;
constexpr double kMaxSeconds = 253'402'300'800;  // the year 10000

std::unexpected<Error> malformed(std::string why) {
  return fail(ErrorCode::invalid_data, "the ID token " + std::move(why));
}
std::unexpected<Error> refused(std::string why) {
  return fail(ErrorCode::unauthenticated, "the ID token " + std::move(why));
}

// Returns whether a claim has a value that can identify something: not empty, and no text that only looks like another.
bool is_plain(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && trimmed(text) == text && is_utf8(text) &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Reads an optional text; an error when it has another type or is not plain.
Result<std::string> text_claim(const Json& claims, std::string_view name) {
  const auto found = claims.find(name);
  if (found == claims.end() || found->is_null()) return std::string();
  if (!found->is_string() || !is_plain(found->get_ref<const std::string&>(), kMaxText)) {
    return refused("has a malformed or an empty claim " + std::string(name));
  }
  return found->get<std::string>();
}

// Reads seconds since 1970, which may have a fraction (RFC 7519, section 2).
std::optional<WallTime> time_claim(const Json& claims, std::string_view name) {
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) return {};
  const auto seconds = found->get<double>();
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kMaxSeconds) return {};
  return WallTime(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1'000)));
}

Result<void> check_times(const Json& claims, WallTime now) {
  const auto expires = time_claim(claims, "exp");
  const auto issued = time_claim(claims, "iat");
  if (!expires || !issued) return refused("has no time of issue or of expiry");
  if (now >= *expires + kClockSkew) return refused("has expired");
  if (*issued > now + kClockSkew) return refused("was issued in the future");
  if (!claims.contains("nbf")) return {};
  const auto begins = time_claim(claims, "nbf");
  if (!begins || *begins > now + kClockSkew) return refused("is not valid yet");
  return {};
}

// Section 3.1.3.7, steps 3 to 5.
Result<void> check_audience(const Json& claims, const std::string& client_id) {
  const auto& audience = value_at(claims, {"aud"});
  const bool is_list = audience.is_array();
  const bool names_us =
      is_list ? std::ranges::any_of(audience, [&](const Json& one) { return one == client_id; })
              : audience.is_string() && audience == client_id;
  if (!names_us) return refused("is for another client");
  const auto& party = value_at(claims, {"azp"});
  if (party.is_null() ? is_list && audience.size() > 1 : party != client_id) {
    return refused("was issued to another client");
  }
  return {};
}

bool has_elsewhere(const Json& claims, const std::string& name) {
  return value_at(claims, {"_claim_names"}).contains(name) ||
         value_at(claims, {"hasgroups"}) == true;
}

// The groups are a list of texts or one text.
Result<std::vector<std::string>> groups_of(const Json& claims, const std::string& name) {
  std::vector<std::string> groups;
  const auto found = name.empty() ? claims.end() : claims.find(name);
  if (found == claims.end() || found->is_null()) return groups;
  const Json list = found->is_array() ? *found : Json::array({*found});
  if (list.size() > kMaxGroups) return refused("has too many groups");
  for (const Json& group : list) {
    if (!group.is_string() || !is_plain(group.get_ref<const std::string&>(), kMaxText)) {
      return refused("has a malformed or an empty group");
    }
    groups.push_back(group.get<std::string>());
  }
  return groups;
}

// Some providers send the text "true".
bool is_true(const Json& value) {
  return value == true || value == "true";
}

Result<Json> header_of(std::string_view text) {
  const auto bytes = base64url_decode(text);
  if (!bytes || bytes->empty()) return malformed("has a malformed header");
  auto header = parse_strict_object(*bytes, "the header of the ID token");
  if (!header) return header;
  // No extension is known here (RFC 7515, section 4.1.11).
  if (header->contains("crit")) return malformed("has a header of an unknown kind");
  // A token for another purpose of the same provider has another type (RFC 8725, section 3.11).
  if (header->contains("typ") && !http::equal_ignoring_case(string_at(*header, {"typ"}), "JWT")) {
    return malformed("has another type");
  }
  return header;
}

}  // namespace

Result<UncheckedToken> parse_id_token(std::string_view text) {
  if (text.size() > kMaxIdToken) return malformed("is too long");
  const auto first = text.find('.');
  const auto second = first == text.npos ? text.npos : text.find('.', first + 1);
  if (second == text.npos || text.find('.', second + 1) != text.npos) {
    return malformed("does not have three parts");
  }
  const auto header = header_of(text.substr(0, first));
  if (!header) return std::unexpected(header.error());
  const auto scheme = scheme_of(string_at(*header, {"alg"}));
  if (!scheme) {
    return fail(ErrorCode::unsupported, "the ID token has an algorithm that is not accepted");
  }
  const auto& key_id = value_at(*header, {"kid"});
  if (header->contains("kid") &&
      (!key_id.is_string() || !is_plain(key_id.get_ref<const std::string&>(), kMaxKeyId))) {
    return malformed("has a malformed key id");
  }
  const auto payload = base64url_decode(text.substr(first + 1, second - first - 1));
  auto signature = base64url_decode(text.substr(second + 1));
  if (!payload || !signature || signature->empty()) return malformed("is not in base64url");
  auto claims = parse_strict_object(*payload, "the content of the ID token");
  if (!claims) return std::unexpected(std::move(claims.error()));
  return UncheckedToken{.scheme = *scheme,
                        .key_id = string_at(*header, {"kid"}),
                        .signed_text = std::string(text.substr(0, second)),
                        .signature = std::move(*signature),
                        .claims = std::move(*claims)};
}

Result<Claims> check_id_token(const UncheckedToken& token, const VerificationKey& key,
                              const TokenRules& rules, WallTime now) {
  if (!key.verifies(token.scheme, token.signed_text, token.signature)) {
    return refused("has a wrong signature");
  }
  const Json& json = token.claims;
  if (rules.issuer.empty() || value_at(json, {"iss"}) != rules.issuer) {
    return refused("is of another issuer");
  }
  if (auto checked = check_audience(json, rules.client_id); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (auto checked = check_times(json, now); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (rules.nonce.empty() || !equal_in_constant_time(string_at(json, {"nonce"}), rules.nonce)) {
    return refused("is not of this login");
  }
  Claims claims;
  claims.subject = string_at(json, {"sub"});
  if (!is_plain(claims.subject, kMaxSubject)) return refused("names no user");
  for (const auto& [name, target] :
       {std::pair("email", &claims.email), std::pair("name", &claims.name),
        std::pair("preferred_username", &claims.user_name)}) {
    auto text = text_claim(json, name);
    if (!text) return std::unexpected(std::move(text.error()));
    *target = std::move(*text);
  }
  claims.is_email_verified = !claims.email.empty() && is_true(value_at(json, {"email_verified"}));
  auto groups = groups_of(json, rules.groups_claim);
  if (!groups) return std::unexpected(std::move(groups.error()));
  claims.groups = std::move(*groups);
  claims.has_groups_elsewhere = !rules.groups_claim.empty() && !json.contains(rules.groups_claim) &&
                                has_elsewhere(json, rules.groups_claim);
  return claims;
}

}  // namespace gitops::control_plane_server::sso
