#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops::app_proxy {

// A token as it is stored: encrypted by AES-256-GCM.
struct SealedToken {
  std::string key_id;  // of the key that it was sealed with
  std::string nonce;   // 12 bytes
  std::string text;    // ciphertext and tag
  bool operator==(const SealedToken&) const = default;
};

// Whom a token belongs to, and for which host. It is authenticated with the ciphertext: what was
// sealed for one owner cannot be opened for another, wherever it was copied to.
struct TokenOwner {
  std::string user_id;
  std::string integration;
  std::string account_id;
  std::string api_root;
};

// Seals and opens users' tokens. Keys are derived from the runtime's token and its store IV by
// HKDF-SHA-256. After the runtime's token has rotated, older keys of this process still open what
// they sealed; is_current() tells what is to be sealed again. Loop thread only.
class TokenSeal {
 public:
  // Derives a key and makes it the current one. An empty token changes nothing.
  void use(const Secret& runtime_token, const Secret& store_iv);
  [[nodiscard]] bool has_key() const { return !current_.empty(); }

  // `unavailable` while there is no key: the runtime is not registered yet.
  Result<SealedToken> seal(const TokenOwner& owner, const Secret& token) const;
  // `invalid_data` when the key is not known any more, or the text is not the owner's. The user has
  // to register a token again then.
  Result<Secret> open(const TokenOwner& owner, const SealedToken& sealed) const;
  [[nodiscard]] bool is_current(const SealedToken& sealed) const {
    return sealed.key_id == current_;
  }

  // The same for a text that is no token, as the state of a login. It opens for this purpose only,
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
