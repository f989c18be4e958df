#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// The encryption of a control stream of frp's wire protocol v2: records under AES-256-GCM. The sender
// puts a random nonce before its first record and counts it up for each; a record is the length of
// what follows in 32 bits, and the sealed bytes with their tag. Nonce and length are authenticated.
// docs/tunnel-protocol.md, "Wire v2".
namespace gitops::tunnel {

// Plain bytes of one record.
inline constexpr std::size_t kMaxRecord = 64 * 1024;

// Seals the bytes of one direction.
class RecordSealer {
 public:
  // `nonce`: kSealNonceSize unpredictable bytes, never used before with this key.
  RecordSealer(Secret key, std::string_view nonce);
  // Seals what stands in `out` from `start` on, the next bytes of the stream. The first nonce goes
  // before the first of them.
  void seal(std::string& out, std::size_t start);

 private:
  Secret key_;
  std::string nonce_;  // of the next record
  std::string first_;
  bool has_begun_ = false;
};

// Opens the bytes of one direction. Holds at most one record.
class RecordOpener {
 public:
  explicit RecordOpener(Secret key) : key_(std::move(key)) {}
  // Takes the next bytes of the stream and returns the plain bytes of the records that are complete
  // with them. Errors: protocol (changed on the way, or another key), too_large; after one it is of no
  // use.
  Result<std::string> open(std::string_view bytes);

 private:
  Secret key_;
  std::string first_;  // as far as it was received
  std::string nonce_;  // of the next record
  std::string held_;   // of the next record
};

}  // namespace gitops::tunnel
