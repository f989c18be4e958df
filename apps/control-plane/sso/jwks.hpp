#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/crypto.hpp"
#include "common/core/error.hpp"

namespace gitops::control_plane_server::sso {

// Returns the scheme of a JWS algorithm that is accepted: RS256, PS256, ES256 or EdDSA. Nothing for any other name, such
// as "none" and the HMACs, for which a public key would be the secret.
std::optional<SignatureScheme> scheme_of(std::string_view algorithm);

// The keys that an identity provider publishes (JWK Set, RFC 7517 section 5). Pure.
class JwkSet {
 public:
  JwkSet() = default;
  // Parses a set. Keys of other kinds, sizes and uses are left out, as new ones may appear at any time. invalid_data: no
  // JWK Set, or one of more than 100 keys.
  static Result<JwkSet> parse(std::string_view text);

  // Returns the key with this id for this scheme. An empty id stands for the only key of the scheme. Null: there is none,
  // or more than one.
  [[nodiscard]] const VerificationKey* find(std::string_view id, SignatureScheme scheme) const;
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  struct Entry {
    std::string id;
    std::optional<SignatureScheme>
        only;  // from the member "alg"; nothing: every scheme of its kind
    VerificationKey key;
  };
  std::vector<Entry> keys_;
};

}  // namespace gitops::control_plane_server::sso
