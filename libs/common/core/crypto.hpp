#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

struct evp_md_ctx_st;      // OpenSSL's
struct evp_mac_ctx_st;     // OpenSSL's
struct evp_cipher_ctx_st;  // OpenSSL's
struct evp_pkey_st;        // OpenSSL's

// Hashing, sealing and randomness by OpenSSL's EVP; no algorithm is written here. Texts are bytes.
// Functions may be called on any thread, an object by one thread at a time. A failure of OpenSSL
// (no such algorithm, no memory, no entropy) throws std::runtime_error.
namespace gitops {

// A SHA-256, or an HMAC with it: 32 bytes.
using Sha256Sum = std::array<std::uint8_t, 32>;

// SHA-256 (FIPS 180-4) of bytes that are added in parts.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // Returns the sum of all parts. Call it once.
  [[nodiscard]] Sha256Sum finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_md_ctx_st, Free>;

  // A context for reuse: making one costs as much as hashing a short text. OpenSSL wipes the text
  // when the hash ends.
  static thread_local Context spare_;
  Context context_;
};
[[nodiscard]] Sha256Sum sha256(std::string_view bytes);

// SHA-1, 20 bytes, for old protocols that require it (the WebSocket handshake). It is broken: an
// attacker can make two texts with the same sum.
using Sha1Sum = std::array<std::uint8_t, 20>;
[[nodiscard]] Sha1Sum sha1(std::string_view bytes);

// MD5, 16 bytes, for old protocols that require it (frp's authentication). It is broken: an
// attacker makes two texts with the same sum in seconds.
using Md5Sum = std::array<std::uint8_t, 16>;
[[nodiscard]] Md5Sum md5(std::string_view bytes);

// HMAC-SHA-256 (RFC 2104) of bytes that are added in parts. The key may be empty.
class HmacSha256 {
 public:
  explicit HmacSha256(std::string_view key);
  void add(std::string_view bytes);
  // Returns the code of all parts. Call it once.
  [[nodiscard]] Sha256Sum finish();

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  std::unique_ptr<evp_mac_ctx_st, Free> context_;
};
[[nodiscard]] Sha256Sum hmac_sha256(std::string_view key, std::string_view bytes);

// Derives `size` bytes (at most 8,160) from a secret by HKDF-SHA-256 (RFC 5869). `salt` may be
// empty; `info` names the purpose of the bytes.
[[nodiscard]] Secret hkdf_sha256(std::string_view secret, std::string_view salt,
                                 std::string_view info, std::size_t size);

// Derives `size` bytes from a password by PBKDF2 with HMAC-SHA-1 (RFC 8018). The password may be
// empty. Only for old protocols; few iterations protect no weak password.
[[nodiscard]] Secret pbkdf2_hmac_sha1(std::string_view password, std::string_view salt,
                                      unsigned iterations, std::size_t size);

// One direction of a stream under AES-128 in CFB mode with 128-bit feedback (NIST SP 800-38A). It
// does not detect a changed ciphertext: only for protocols that require it, inside of TLS.
class Aes128Cfb {
 public:
  static constexpr std::size_t kKeySize = 16;
  static constexpr std::size_t kIvSize = 16;
  enum class Direction : std::uint8_t { encrypt, decrypt };
  // Throws std::invalid_argument for other sizes of key and IV.
  Aes128Cfb(Direction direction, const Secret& key, std::string_view iv);
  // Transforms in place the bytes that follow those of earlier calls.
  void apply(std::span<char> bytes);

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
};

// AES-256-GCM (NIST SP 800-38D).
inline constexpr std::size_t kSealKeySize = 32;
inline constexpr std::size_t kSealNonceSize = 12;
inline constexpr std::size_t kSealTagSize = 16;
// Encrypts `plain` and returns it with a tag of 16 bytes behind it; the tag covers `associated`,
// too, which is not in the result. A nonce must be used once only with a key: with two texts of the
// same nonce an attacker can forge more. Throws std::invalid_argument for other sizes of key and
// nonce.
[[nodiscard]] std::string seal(const Secret& key, std::string_view nonce, std::string_view plain,
                               std::string_view associated = {});
// Returns the plain text. invalid_data when the key, the nonce, the text or `associated` is not the
// one that sealed it.
[[nodiscard]] Result<std::string> unseal(const Secret& key, std::string_view nonce,
                                         std::string_view sealed, std::string_view associated = {});

// Key size of Ed25519 (RFC 8032). The private key is its seed of 32 bytes; another size throws
// std::invalid_argument.
inline constexpr std::size_t kEd25519KeySize = 32;
// Returns the signature, 64 bytes.
[[nodiscard]] std::string ed25519_sign(const Secret& seed, std::string_view message);
[[nodiscard]] std::string ed25519_public_key(const Secret& seed);

// Signature schemes for JSON Web Signatures (RFC 7518, RFC 8037), each for one kind of key.
enum class SignatureScheme : std::uint8_t {
  rsa_pkcs1_sha256,   // RS256
  rsa_pss_sha256,     // PS256; the salt has 32 bytes
  ecdsa_p256_sha256,  // ES256; a signature is r and s, 32 bytes each
  ed25519,            // EdDSA
};

// A public key that verifies signatures. It may be copied, and used on several threads at once.
class VerificationKey {
 public:
  enum class Kind : std::uint8_t { rsa, p256, ed25519 };

  // Makes an RSA key of big-endian numbers. invalid_data: the modulus has less than 2,048 or more
  // than 8,192 bits, or the exponent is even, below 3 or longer than 4 bytes.
  static Result<VerificationKey> rsa(std::string_view modulus, std::string_view exponent);
  // Makes a key of the coordinates of a point, 32 bytes each. invalid_data: no point of P-256.
  static Result<VerificationKey> p256(std::string_view x, std::string_view y);
  // invalid_data: not 32 bytes.
  static Result<VerificationKey> ed25519(std::string_view key);

  [[nodiscard]] Kind kind() const { return kind_; }
  // Returns the kind of key that a scheme is for.
  [[nodiscard]] static Kind kind_for(SignatureScheme scheme);
  // Returns false for a wrong signature, and for a scheme of another kind of key.
  [[nodiscard]] bool verifies(SignatureScheme scheme, std::string_view message,
                              std::string_view signature) const;

 private:
  VerificationKey(Kind kind, std::shared_ptr<evp_pkey_st> key)
      : kind_(kind), key_(std::move(key)) {}

  Kind kind_;
  std::shared_ptr<evp_pkey_st> key_;
};

// Encrypts `plain` by RSA-OAEP with SHA-256 (RFC 8017) for the key of an X.509 certificate in PEM.
// Decryption needs the same label. invalid_data: no certificate of an RSA key of 2,048 to 16,384 bits, or
// one that has expired; invalid_argument: `plain` is too long for the key.
[[nodiscard]] Result<std::string> rsa_oaep_encrypt(std::string_view certificate,
                                                   std::string_view plain, std::string_view label);
// Returns whether an RSA private key in PEM, without a password, belongs to a certificate.
// invalid_data: one of them is malformed.
[[nodiscard]] Result<bool> is_key_of(const Secret& private_key, std::string_view certificate);

// Returns unpredictable bytes for keys, nonces and tokens.
[[nodiscard]] std::string random_bytes(std::size_t size);

// Compares texts in a time that does not depend on their contents; the time reveals whether the
// sizes are equal.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b);

// Overwrites memory that held a secret; the compiler does not remove the call.
void wipe(void* memory, std::size_t size);

// Returns the bytes of a sum as text.
template <std::size_t size>
[[nodiscard]] std::string_view bytes_of(const std::array<std::uint8_t, size>& sum) {
  return {reinterpret_cast<const char*>(sum.data()), sum.size()};
}

}  // namespace gitops
