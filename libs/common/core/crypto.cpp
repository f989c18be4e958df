#include "common/core/crypto.hpp"

#include <limits>
#include <stdexcept>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

namespace gitops {
namespace {

void check(int outcome, const char* what) {
  if (outcome != 1) throw std::runtime_error(std::string("OpenSSL refuses ") + what);
}

// Looks an algorithm up once: a look-up for each sum would cost as much as the sum of a short text.
template <class Algorithm>
Algorithm* available(Algorithm* algorithm, const char* name) {
  check(algorithm != nullptr ? 1 : 0, name);
  return algorithm;
}

const unsigned char* bytes(std::string_view text) {
  // OpenSSL requires a pointer for an empty text, too.
  return reinterpret_cast<const unsigned char*>(text.data() == nullptr ? "" : text.data());
}

unsigned char* bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

// Converts a size to the int in which OpenSSL counts bytes.
int int_size(std::size_t size) {
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw std::invalid_argument("more than 2 GiB for OpenSSL at once");
  }
  return static_cast<int>(size);
}

OSSL_PARAM parameter(const char* name, std::string_view value) {
  // OpenSSL's parameter is not const, but OpenSSL only reads it.
  return OSSL_PARAM_construct_octet_string(name, const_cast<unsigned char*>(bytes(value)),
                                           value.size());
}

OSSL_PARAM sha256_parameter(const char* name) {
  static char sha256[] = "SHA256";
  return OSSL_PARAM_construct_utf8_string(name, sha256, 0);
}

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

Key ed25519_key(const Secret& seed) {
  if (seed.reveal().size() != kEd25519KeySize) {
    throw std::invalid_argument("an Ed25519 key has 32 bytes");
  }
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes(seed.reveal()),
                                       kEd25519KeySize));
  check(key ? 1 : 0, "Ed25519");
  return key;
}

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

Bio reader_of(std::string_view pem) {
  Bio bio(BIO_new_mem_buf(bytes(pem), int_size(pem.size())));
  check(bio ? 1 : 0, "memory");
  return bio;
}

// Prevents OpenSSL from asking for a password at the terminal.
int no_password(char*, int, int, void*) {
  return -1;
}

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;

Certificate certificate_of(std::string_view pem) {
  Certificate certificate(PEM_read_bio_X509(reader_of(pem).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return certificate;
}

struct FreeKeyContext {
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeNumber {
  void operator()(BIGNUM* number) const { BN_free(number); }
};
using Number = std::unique_ptr<BIGNUM, FreeNumber>;

Number number_of(std::string_view big_endian) {
  Number number(BN_bin2bn(bytes(big_endian), int_size(big_endian.size()), nullptr));
  check(number ? 1 : 0, "memory");
  return number;
}

// Returns null when OpenSSL refuses the values.
std::shared_ptr<EVP_PKEY> public_key_of(const char* algorithm, OSSL_PARAM* parameters) {
  const std::unique_ptr<EVP_PKEY_CTX, FreeKeyContext> context(
      EVP_PKEY_CTX_new_from_name(nullptr, algorithm, nullptr));
  EVP_PKEY* key = nullptr;
  if (!context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
    key = nullptr;
  }
  ERR_clear_error();
  return key == nullptr ? nullptr : std::shared_ptr<EVP_PKEY>(key, FreeKey());
}

// Returns an ECDSA signature in the DER form that OpenSSL takes; empty for another size.
std::string der_signature(std::string_view signature) {
  constexpr std::size_t kNumberSize = 32;
  if (signature.size() != 2 * kNumberSize) return {};
  struct Free {
    void operator()(ECDSA_SIG* numbers) const { ECDSA_SIG_free(numbers); }
  };
  const std::unique_ptr<ECDSA_SIG, Free> numbers(ECDSA_SIG_new());
  check(numbers ? 1 : 0, "memory");
  auto r = number_of(signature.substr(0, kNumberSize));
  auto s = number_of(signature.substr(kNumberSize));
  check(ECDSA_SIG_set0(numbers.get(), r.release(), s.release()), "ECDSA");
  std::string der(static_cast<std::size_t>(i2d_ECDSA_SIG(numbers.get(), nullptr)), '\0');
  auto* at = bytes(der);
  check(i2d_ECDSA_SIG(numbers.get(), &at) > 0 ? 1 : 0, "ECDSA");
  return der;
}

enum class Direction { open, seal };

Cipher new_cipher(Direction direction, const Secret& key, std::string_view nonce) {
  static EVP_CIPHER* const gcm =
      available(EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr), "AES-256-GCM");
  if (key.reveal().size() != kSealKeySize || nonce.size() != kSealNonceSize) {
    throw std::invalid_argument("a key of 32 bytes and a nonce of 12 are needed");
  }
  Cipher cipher(EVP_CIPHER_CTX_new());
  check(EVP_CipherInit_ex2(cipher.get(), gcm, bytes(key.reveal()), bytes(nonce),
                           direction == Direction::seal ? 1 : 0, nullptr),
        "AES-256-GCM");
  return cipher;
}

// Adds bytes; `out` is null for bytes that are only authenticated.
void update(const Cipher& cipher, unsigned char* out, std::string_view in) {
  int size = 0;
  check(EVP_CipherUpdate(cipher.get(), out, &size, bytes(in), int_size(in.size())), "AES-256-GCM");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

thread_local Sha256::Context Sha256::spare_;

Sha256::Sha256() : context_(spare_ ? std::move(spare_) : Context(EVP_MD_CTX_new())) {
  static EVP_MD* const sha256 = available(EVP_MD_fetch(nullptr, "SHA256", nullptr), "SHA-256");
  check(EVP_DigestInit_ex(context_.get(), sha256, nullptr), "SHA-256");
}

void Sha256::add(std::string_view bytes) {
  check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()), "SHA-256");
}

Sha256Sum Sha256::finish() {
  Sha256Sum sum;
  check(EVP_DigestFinal_ex(context_.get(), sum.data(), nullptr), "SHA-256");
  spare_ = std::move(context_);
  return sum;
}

Sha256Sum sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

Sha1Sum sha1(std::string_view bytes) {
  static EVP_MD* const sha1 = available(EVP_MD_fetch(nullptr, "SHA1", nullptr), "SHA-1");
  Sha1Sum sum;
  check(EVP_Digest(bytes.data(), bytes.size(), sum.data(), nullptr, sha1, nullptr), "SHA-1");
  return sum;
}

Md5Sum md5(std::string_view bytes) {
  static EVP_MD* const md5 = available(EVP_MD_fetch(nullptr, "MD5", nullptr), "MD5");
  Md5Sum sum;
  check(EVP_Digest(bytes.data(), bytes.size(), sum.data(), nullptr, md5, nullptr), "MD5");
  return sum;
}

void HmacSha256::Free::operator()(evp_mac_ctx_st* context) const {
  EVP_MAC_CTX_free(context);
}

HmacSha256::HmacSha256(std::string_view key) {
  static EVP_MAC* const hmac = available(EVP_MAC_fetch(nullptr, "HMAC", nullptr), "HMAC");
  context_.reset(EVP_MAC_CTX_new(hmac));
  const std::array parameters = {sha256_parameter(OSSL_MAC_PARAM_DIGEST),
                                 OSSL_PARAM_construct_end()};
  check(EVP_MAC_init(context_.get(), bytes(key), key.size(), parameters.data()), "HMAC");
}

void HmacSha256::add(std::string_view text) {
  check(EVP_MAC_update(context_.get(), bytes(text), text.size()), "HMAC");
}

Sha256Sum HmacSha256::finish() {
  Sha256Sum sum;
  std::size_t size = 0;
  check(EVP_MAC_final(context_.get(), sum.data(), &size, sum.size()), "HMAC");
  return sum;
}

Sha256Sum hmac_sha256(std::string_view key, std::string_view bytes) {
  HmacSha256 hmac(key);
  hmac.add(bytes);
  return hmac.finish();
}

Secret hkdf_sha256(std::string_view secret, std::string_view salt, std::string_view info,
                   std::size_t size) {
  static EVP_KDF* const hkdf = available(EVP_KDF_fetch(nullptr, "HKDF", nullptr), "HKDF");
  struct Free {
    void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
  };
  const std::unique_ptr<EVP_KDF_CTX, Free> context(EVP_KDF_CTX_new(hkdf));
  const std::array parameters = {sha256_parameter(OSSL_KDF_PARAM_DIGEST),
                                 parameter(OSSL_KDF_PARAM_KEY, secret),
                                 parameter(OSSL_KDF_PARAM_SALT, salt),
                                 parameter(OSSL_KDF_PARAM_INFO, info), OSSL_PARAM_construct_end()};
  std::string derived(size, '\0');
  check(EVP_KDF_derive(context.get(), bytes(derived), size, parameters.data()), "HKDF");
  return Secret(std::move(derived));
}

Secret pbkdf2_hmac_sha1(std::string_view password, std::string_view salt, unsigned iterations,
                        std::size_t size) {
  std::string derived(size, '\0');
  check(PKCS5_PBKDF2_HMAC(reinterpret_cast<const char*>(bytes(password)), int_size(password.size()),
                          bytes(salt), int_size(salt.size()), static_cast<int>(iterations),
                          EVP_sha1(), int_size(size), bytes(derived)),
        "PBKDF2");
  return Secret(std::move(derived));
}

void Aes128Cfb::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

Aes128Cfb::Aes128Cfb(Direction direction, const Secret& key, std::string_view iv)
    : context_(EVP_CIPHER_CTX_new()) {
  static EVP_CIPHER* const cfb =
      available(EVP_CIPHER_fetch(nullptr, "AES-128-CFB", nullptr), "AES-128-CFB");
  if (key.reveal().size() != kKeySize || iv.size() != kIvSize) {
    throw std::invalid_argument("AES-128-CFB needs a key and an IV of 16 bytes");
  }
  check(EVP_CipherInit_ex2(context_.get(), cfb, bytes(key.reveal()), bytes(iv),
                           direction == Direction::encrypt ? 1 : 0, nullptr),
        "AES-128-CFB");
}

void Aes128Cfb::apply(std::span<char> text) {
  auto* at = reinterpret_cast<unsigned char*>(text.data());
  int size = 0;
  check(EVP_CipherUpdate(context_.get(), at, &size, at, int_size(text.size())), "AES-128-CFB");
}

std::string seal(const Secret& key, std::string_view nonce, std::string_view plain,
                 std::string_view associated) {
  const auto cipher = new_cipher(Direction::seal, key, nonce);
  std::string sealed(plain.size() + kSealTagSize, '\0');
  if (!associated.empty()) update(cipher, nullptr, associated);
  if (!plain.empty()) update(cipher, bytes(sealed), plain);
  auto* tag = bytes(sealed) + plain.size();
  int size = 0;
  check(EVP_CipherFinal_ex(cipher.get(), tag, &size), "AES-256-GCM");
  check(
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(kSealTagSize), tag),
      "AES-256-GCM");
  return sealed;
}

Result<std::string> unseal(const Secret& key, std::string_view nonce, std::string_view sealed,
                           std::string_view associated) {
  const auto cipher = new_cipher(Direction::open, key, nonce);
  if (sealed.size() < kSealTagSize) {
    return fail(ErrorCode::invalid_data, "the sealed text is too short");
  }
  const auto hidden = sealed.substr(0, sealed.size() - kSealTagSize);
  std::string tag(sealed.substr(hidden.size()));
  std::string plain(hidden.size(), '\0');
  if (!associated.empty()) update(cipher, nullptr, associated);
  if (!hidden.empty()) update(cipher, bytes(plain), hidden);
  check(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(kSealTagSize),
                            tag.data()),
        "AES-256-GCM");
  int size = 0;
  if (EVP_CipherFinal_ex(cipher.get(), bytes(tag), &size) != 1) {
    OPENSSL_cleanse(plain.data(), plain.size());  // not authenticated
    return fail(ErrorCode::invalid_data, "the sealed text was changed, or the key is another");
  }
  return plain;
}

std::string ed25519_sign(const Secret& seed, std::string_view message) {
  const auto key = ed25519_key(seed);
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  std::string signature(64, '\0');
  std::size_t size = signature.size();
  check(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()), "Ed25519");
  check(EVP_DigestSign(context.get(), bytes(signature), &size, bytes(message), message.size()),
        "Ed25519");
  return signature;
}

std::string ed25519_public_key(const Secret& seed) {
  const auto key = ed25519_key(seed);
  std::string out(kEd25519KeySize, '\0');
  std::size_t size = out.size();
  check(EVP_PKEY_get_raw_public_key(key.get(), bytes(out), &size), "Ed25519");
  return out;
}

Result<VerificationKey> VerificationKey::rsa(std::string_view modulus, std::string_view exponent) {
  constexpr int kFewestBits = 2'048;
  constexpr int kMaxBits = 8'192;
  constexpr std::size_t kMaxExponent = 4;
  if (modulus.size() > kMaxBits / 8 + 1 || exponent.size() > kMaxExponent) {
    return fail(ErrorCode::invalid_data, "an RSA key is too long");
  }
  const auto n = number_of(modulus);
  const auto e = number_of(exponent);
  if (const int bits = BN_num_bits(n.get()); bits < kFewestBits || bits > kMaxBits) {
    return fail(ErrorCode::invalid_data, "an RSA key has " + std::to_string(bits) + " bits");
  }
  if (BN_is_odd(n.get()) == 0 || BN_is_odd(e.get()) == 0 || BN_is_one(e.get()) != 0) {
    return fail(ErrorCode::invalid_data, "the numbers of an RSA key are malformed");
  }
  struct FreeBuilder {
    void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  };
  struct FreeParameters {
    void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
  };
  const std::unique_ptr<OSSL_PARAM_BLD, FreeBuilder> builder(OSSL_PARAM_BLD_new());
  check(OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()), "RSA");
  check(OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()), "RSA");
  const std::unique_ptr<OSSL_PARAM, FreeParameters> parameters(
      OSSL_PARAM_BLD_to_param(builder.get()));
  auto key = public_key_of("RSA", parameters.get());
  if (!key) return fail(ErrorCode::invalid_data, "the numbers are no RSA key");
  return VerificationKey(Kind::rsa, std::move(key));
}

Result<VerificationKey> VerificationKey::p256(std::string_view x, std::string_view y) {
  constexpr std::size_t kNumberSize = 32;
  if (x.size() != kNumberSize || y.size() != kNumberSize) {
    return fail(ErrorCode::invalid_data, "a coordinate of P-256 has 32 bytes");
  }
  const auto point = "\x04" + std::string(x) + std::string(y);
  static char group[] = "prime256v1";
  std::array parameters = {OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
                           parameter(OSSL_PKEY_PARAM_PUB_KEY, point), OSSL_PARAM_construct_end()};
  auto key = public_key_of("EC", parameters.data());
  if (!key) return fail(ErrorCode::invalid_data, "the numbers are no point of P-256");
  return VerificationKey(Kind::p256, std::move(key));
}

Result<VerificationKey> VerificationKey::ed25519(std::string_view key) {
  if (key.size() != kEd25519KeySize) {
    return fail(ErrorCode::invalid_data, "an Ed25519 key has 32 bytes");
  }
  std::array parameters = {parameter(OSSL_PKEY_PARAM_PUB_KEY, key), OSSL_PARAM_construct_end()};
  auto made = public_key_of("ED25519", parameters.data());
  if (!made) return fail(ErrorCode::invalid_data, "the bytes are no Ed25519 key");
  return VerificationKey(Kind::ed25519, std::move(made));
}

VerificationKey::Kind VerificationKey::kind_for(SignatureScheme scheme) {
  switch (scheme) {
    case SignatureScheme::rsa_pkcs1_sha256:
    case SignatureScheme::rsa_pss_sha256:
      return VerificationKey::Kind::rsa;
    case SignatureScheme::ecdsa_p256_sha256:
      return VerificationKey::Kind::p256;
    case SignatureScheme::ed25519:
      break;
  }
  return VerificationKey::Kind::ed25519;
}

bool VerificationKey::verifies(SignatureScheme scheme, std::string_view message,
                               std::string_view signature) const {
  if (kind_for(scheme) != kind_) return false;
  std::string der;
  if (scheme == SignatureScheme::ecdsa_p256_sha256) {
    der = der_signature(signature);
    if (der.empty()) return false;
    signature = der;
  }
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* settings = nullptr;  // belongs to `context`
  const char* const digest = scheme == SignatureScheme::ed25519 ? nullptr : "SHA256";
  check(EVP_DigestVerifyInit_ex(context.get(), &settings, digest, nullptr, nullptr, key_.get(),
                                nullptr),
        "a public key");
  if (scheme == SignatureScheme::rsa_pss_sha256) {
    check(EVP_PKEY_CTX_set_rsa_padding(settings, RSA_PKCS1_PSS_PADDING), "RSA-PSS");
    check(EVP_PKEY_CTX_set_rsa_pss_saltlen(settings, RSA_PSS_SALTLEN_DIGEST), "RSA-PSS");
  }
  const bool is_right = EVP_DigestVerify(context.get(), bytes(signature), signature.size(),
                                         bytes(message), message.size()) == 1;
  ERR_clear_error();
  return is_right;
}

Result<std::string> rsa_oaep_encrypt(std::string_view certificate, std::string_view plain,
                                     std::string_view label) {
  constexpr int kFewestBits = 2'048;
  constexpr int kMaxBits = 16'384;
  const auto found = certificate_of(certificate);
  EVP_PKEY* const key = found ? X509_get0_pubkey(found.get()) : nullptr;
  if (key == nullptr || EVP_PKEY_is_a(key, "RSA") != 1) {
    return fail(ErrorCode::invalid_data, "there is no certificate of an RSA key in PEM");
  }
  if (const int bits = EVP_PKEY_get_bits(key); bits < kFewestBits || bits > kMaxBits) {
    return fail(ErrorCode::invalid_data,
                "the certificate's RSA key has " + std::to_string(bits) + " bits");
  }
  if (X509_cmp_current_time(X509_get0_notAfter(found.get())) <= 0) {
    return fail(ErrorCode::invalid_data, "the certificate has expired");
  }
  const std::unique_ptr<EVP_PKEY_CTX, FreeKeyContext> context(
      EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  check(EVP_PKEY_encrypt_init(context.get()), "RSA-OAEP");
  check(EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_OAEP_PADDING), "RSA-OAEP");
  check(EVP_PKEY_CTX_set_rsa_oaep_md(context.get(), EVP_sha256()), "RSA-OAEP");
  check(EVP_PKEY_CTX_set_rsa_mgf1_md(context.get(), EVP_sha256()), "RSA-OAEP");
  if (!label.empty()) {
    // OpenSSL takes ownership of the copy.
    void* const copy = OPENSSL_memdup(label.data(), label.size());
    check(copy != nullptr ? 1 : 0, "memory");
    check(EVP_PKEY_CTX_set0_rsa_oaep_label(context.get(), copy, int_size(label.size())),
          "RSA-OAEP");
  }
  std::size_t size = static_cast<std::size_t>(EVP_PKEY_get_size(key));
  std::string out(size, '\0');
  if (EVP_PKEY_encrypt(context.get(), bytes(out), &size, bytes(plain), plain.size()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::invalid_argument, "the text is too long for RSA-OAEP with this key");
  }
  out.resize(size);
  return out;
}

Result<bool> is_key_of(const Secret& private_key, std::string_view certificate) {
  const auto found = certificate_of(certificate);
  const Key key(PEM_read_bio_PrivateKey(reader_of(private_key.reveal()).get(), nullptr, no_password,
                                        nullptr));
  ERR_clear_error();
  if (!key || EVP_PKEY_is_a(key.get(), "RSA") != 1) {
    return fail(ErrorCode::invalid_data, "there is no RSA private key in PEM");
  }
  if (!found) return fail(ErrorCode::invalid_data, "there is no certificate in PEM");
  const bool fits = X509_check_private_key(found.get(), key.get()) == 1;
  ERR_clear_error();
  return fits;
}

std::string random_bytes(std::size_t size) {
  std::string out(size, '\0');
  check(RAND_bytes(bytes(out), int_size(size)), "random bytes");
  return out;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(void* memory, std::size_t size) {
  OPENSSL_cleanse(memory, size);
}

}  // namespace gitops
