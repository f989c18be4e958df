#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "control-plane/sso/jwks.hpp"

// ID tokens of OpenID Connect (Core 1.0, sections 2 and 3.1.3.7) as compact JWS (RFC 7515). Pure. An error says what is
// wrong with a token and quotes nothing of it.
namespace gitops::control_plane_server::sso {

inline constexpr std::size_t kMaxIdToken = 64UL * 1024;  // characters
inline constexpr std::chrono::seconds kClockSkew{60};    // between the provider and this server

// A token whose signature and claims are not checked yet.
struct UncheckedToken {
  SignatureScheme scheme = SignatureScheme::rsa_pkcs1_sha256;
  std::string key_id;       // empty: not named
  std::string signed_text;  // header and claims as they were signed
  std::string signature;
  nlohmann::json claims;
};
// Parses a token. invalid_data: it is malformed. unsupported: its algorithm is not accepted.
Result<UncheckedToken> parse_id_token(std::string_view text);

// Requirements for a token.
struct TokenRules {
  std::string issuer;
  std::string client_id;
  std::string nonce;         // of the login; not empty
  std::string groups_claim;  // name of the claim with the user's groups; empty: none is read
};

// The user that a token names. All texts are UTF-8 without control characters.
struct Claims {
  std::string subject;  // unique at the issuer, and never another user's
  std::string email;    // empty: not sent
  bool is_email_verified = false;
  std::string name;  // for people; empty: not sent
  std::string
      user_name;  // preferred_username; empty: not sent. It may change and may be another user's later.
  std::vector<std::string> groups;
  // Microsoft Entra leaves the claim out and refers to another service when a user has too many groups.
  bool has_groups_elsewhere = false;
};
// Checks the signature and every claim. Errors have code unauthenticated.
Result<Claims> check_id_token(const UncheckedToken& token, const VerificationKey& key,
                              const TokenRules& rules, WallTime now);

}  // namespace gitops::control_plane_server::sso
