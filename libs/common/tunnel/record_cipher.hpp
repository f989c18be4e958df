#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// Encryption of a control stream in frp's wire protocol v2: records under AES-256-GCM. The sender
// puts a random nonce before its first record and increments it for each. A record is its length in
// 32 bits, then the sealed bytes with their tag. Nonce and length are authenticated.
// docs/reference/tunnel/protocol.md, "Wire v2".
namespace gitops::tunnel {

// Maximum plain bytes of one record.
inline constexpr std::size_t kMaxRecord = 64 * 1024;

// Encrypts the bytes of one direction.
class RecordSealer {
 public:
  // `nonce`: kSealNonceSize unpredictable bytes, unique for this key.
  RecordSealer(Secret key, std::string_view nonce);
  // Seals in place the next bytes of the stream: those in `out` from `start` on. Inserts the first
  // nonce before the first of them.
  void seal(std::string& out, std::size_t start);

 private:
  Secret key_;
  std::string nonce_;  // of the next record
  std::string first_;
  bool has_begun_ = false;
};

// Decrypts the bytes of one direction. Buffers at most one record.
class RecordOpener {
 public:
  explicit RecordOpener(Secret key) : key_(std::move(key)) {}
  // Consumes the next bytes of the stream and returns the plain bytes of the records that they
  // complete. Errors: protocol (modified bytes, or another key), too_large; the opener is unusable
  // after an error.
  Result<std::string> open(std::string_view bytes);

 private:
  Secret key_;
  std::string first_;  // the received part
  std::string nonce_;  // of the next record
  std::string held_;   // received part of the next record
};

}  // namespace gitops::tunnel
