#include "control-plane/sso/jwks.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "control-plane/sso/strict_json.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxKeys = 100;
constexpr std::size_t kMaxNumber = 2'048;  // characters of base64url

// Returns the bytes of a number in base64url; empty when it is malformed.
std::string number_at(const Json& key, std::string_view name) {
  const auto text = string_at(key, {name});
  if (text.empty() || text.size() > kMaxNumber) return {};
  return base64url_decode(text).value_or(std::string());
}

// Returns whether the key may verify signatures (RFC 7517, sections 4.2 and 4.3). A private key that is published is
// known to everybody.
bool is_for_signatures(const Json& key) {
  if (key.contains("d") || key.contains("k")) return false;
  if (key.contains("use") && string_at(key, {"use"}) != "sig") return false;
  const auto operations = key.find("key_ops");
  return operations == key.end() ||
         (operations->is_array() &&
          std::ranges::any_of(*operations, [](const Json& name) { return name == "verify"; }));
}

Result<VerificationKey> key_of(const Json& key) {
  const auto kind = string_at(key, {"kty"});
  const auto curve = string_at(key, {"crv"});
  if (kind == "RSA") return VerificationKey::rsa(number_at(key, "n"), number_at(key, "e"));
  if (kind == "EC" && curve == "P-256") {
    return VerificationKey::p256(number_at(key, "x"), number_at(key, "y"));
  }
  if (kind == "OKP" && curve == "Ed25519") return VerificationKey::ed25519(number_at(key, "x"));
  return fail(ErrorCode::unsupported, "another kind of key");
}

}  // namespace

std::optional<SignatureScheme> scheme_of(std::string_view algorithm) {
  if (algorithm == "RS256") return SignatureScheme::rsa_pkcs1_sha256;
  if (algorithm == "PS256") return SignatureScheme::rsa_pss_sha256;
  if (algorithm == "ES256") return SignatureScheme::ecdsa_p256_sha256;
  if (algorithm == "EdDSA") return SignatureScheme::ed25519;
  return std::nullopt;
}

Result<JwkSet> JwkSet::parse(std::string_view text) {
  const auto json = parse_strict_object(text, "the provider's key set");
  if (!json) return std::unexpected(json.error());
  const auto& keys = value_at(*json, {"keys"});
  if (!keys.is_array()) return fail(ErrorCode::invalid_data, "the provider's key set has no keys");
  if (keys.size() > kMaxKeys) {
    return fail(ErrorCode::invalid_data, "the provider's key set has more than 100 keys");
  }
  JwkSet set;
  for (const Json& item : keys) {
    if (!item.is_object() || !is_for_signatures(item)) continue;
    auto key = key_of(item);
    if (!key) continue;
    const auto only = scheme_of(string_at(item, {"alg"}));
    if (item.contains("alg") && (!only || VerificationKey::kind_for(*only) != key->kind()))
      continue;
    set.keys_.push_back({.id = string_at(item, {"kid"}), .only = only, .key = std::move(*key)});
  }
  return set;
}

const VerificationKey* JwkSet::find(std::string_view id, SignatureScheme scheme) const {
  const VerificationKey* found = nullptr;
  for (const auto& entry : keys_) {
    if (!id.empty() && entry.id != id) continue;
    if (VerificationKey::kind_for(scheme) != entry.key.kind() ||
        (entry.only && *entry.only != scheme))
      continue;
    if (found != nullptr) return nullptr;
    found = &entry.key;
  }
  return found;
}

}  // namespace gitops::control_plane_server::sso
