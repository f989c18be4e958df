#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/crypto.hpp"
#include "common/core/secret.hpp"

// frp's encryption of a control stream, after Login and LoginResp, and of the work streams of a
// proxy with use_encryption: AES-128-CFB with one state per direction. The sender puts its random
// IV before its first byte. The bytes are not authenticated, and with an empty token the key is a
// public constant, so secrecy depends on TLS.
namespace gitops::tunnel {

// Returns the key of both directions. The token may be empty.
[[nodiscard]] Secret control_key(const Secret& token);

// Encrypts the bytes of one direction.
class ControlEncryptor {
 public:
  // `iv`: Aes128Cfb::kIvSize unpredictable bytes, unique for this key.
  ControlEncryptor(const Secret& key, std::string_view iv);
  // Encrypts in place the next bytes of the stream: those in `out` from `start` on. Inserts the IV
  // before the first of them.
  void encrypt(std::string& out, std::size_t start);

 private:
  Aes128Cfb cipher_;
  std::string iv_;  // empty once it was sent
};

// Decrypts the bytes of one direction.
class ControlDecryptor {
 public:
  explicit ControlDecryptor(Secret key) : key_(std::move(key)) {}
  // Decrypts the next bytes of the stream in place. Returns the plain bytes, a part of `bytes`
  // without those of the IV.
  std::span<char> decrypt(std::span<char> bytes);

 private:
  Secret key_;
  std::string iv_;                   // the received part
  std::optional<Aes128Cfb> cipher_;  // once the IV is complete
};

}  // namespace gitops::tunnel
