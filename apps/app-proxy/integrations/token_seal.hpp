#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops::app_proxy {

// An encrypted token, as stored: AES-256-GCM.
struct SealedToken {
  std::string key_id;  // id of the sealing key
  std::string nonce;   // 12 bytes
  std::string text;    // ciphertext and tag
  bool operator==(const SealedToken&) const = default;
};

// Owner and host of a token. They are authenticated with the ciphertext: a token that was sealed
// for one owner cannot be opened for another, even if it is copied.
struct TokenOwner {
  std::string user_id;
  std::string integration;
  std::string account_id;
  std::string api_root;
};

// Seals and opens users' tokens. Keys are derived from the runtime's token and its store IV by
// HKDF-SHA-256. After a rotation of the runtime's token, older keys of this process still open the
// tokens that they sealed; is_current() shows which tokens need sealing again. Loop thread only.
class TokenSeal {
 public:
  // Derives a key and makes it the current one. An empty token changes nothing.
  void use(const Secret& runtime_token, const Secret& store_iv);
  [[nodiscard]] bool has_key() const { return !current_.empty(); }

  // Seals a token. `unavailable` while there is no key, since the runtime is not registered yet.
  Result<SealedToken> seal(const TokenOwner& owner, const Secret& token) const;
  // Opens a token. `invalid_data` when the key is no longer known, or the token is of another
  // owner. Then the user has to register a token again.
  Result<Secret> open(const TokenOwner& owner, const SealedToken& sealed) const;
  [[nodiscard]] bool is_current(const SealedToken& sealed) const {
    return sealed.key_id == current_;
  }

  // Seals a text that is not a token, as the state of a login. It opens only for the same purpose,
  // and never as a token.
  Result<SealedToken> seal_for(std::string_view purpose, const Secret& text) const;
  Result<Secret> open_for(std::string_view purpose, const SealedToken& sealed) const;

 private:
  Result<SealedToken> seal_with(const std::string& associated, const Secret& text) const;
  Result<Secret> open_with(const std::string& associated, const SealedToken& sealed) const;

  std::map<std::string, Secret> keys_;  // by id
  std::string current_;
};

}  // namespace gitops::app_proxy
