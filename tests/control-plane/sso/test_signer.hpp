#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "common/core/encoding.hpp"

namespace gitops::control_plane_server::sso {

// A private key that signs ID tokens as an identity provider does. `kind` is RSA, EC (P-256) or ED25519.
class TestSigner {
 public:
  explicit TestSigner(const std::string& kind, unsigned bits = 2'048) : kind_(kind) {
    EVP_PKEY* const made = kind == "RSA"  ? EVP_RSA_gen(bits)
                           : kind == "EC" ? EVP_EC_gen("P-256")
                                          : EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
    if (made == nullptr) throw std::runtime_error("no key");
    key_ = std::shared_ptr<EVP_PKEY>(made, EVP_PKEY_free);
  }

  // The public key as a JWK.
  [[nodiscard]] nlohmann::json jwk(const std::string& id) const {
    nlohmann::json key{{"kid", id}, {"use", "sig"}};
    if (kind_ == "RSA") {
      key.update({{"kty", "RSA"},
                  {"n", number(OSSL_PKEY_PARAM_RSA_N, 0)},
                  {"e", number(OSSL_PKEY_PARAM_RSA_E, 0)}});
    } else if (kind_ == "EC") {
      key.update({{"kty", "EC"},
                  {"crv", "P-256"},
                  {"x", number(OSSL_PKEY_PARAM_EC_PUB_X, 32)},
                  {"y", number(OSSL_PKEY_PARAM_EC_PUB_Y, 32)}});
    } else {
      std::string raw(32, '\0');
      std::size_t size = raw.size();
      EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(raw.data()), &size);
      key.update({{"kty", "OKP"}, {"crv", "Ed25519"}, {"x", base64url_encode(raw)}});
    }
    return key;
  }

  // Signs in the form of JWS. `is_pss` is for RSA.
  [[nodiscard]] std::string sign(std::string_view text, bool is_pss = false) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          EVP_MD_CTX_free);
    EVP_PKEY_CTX* settings = nullptr;
    EVP_DigestSignInit_ex(context.get(), &settings, kind_ == "ED25519" ? nullptr : "SHA256",
                          nullptr, nullptr, key_.get(), nullptr);
    if (is_pss) {
      EVP_PKEY_CTX_set_rsa_padding(settings, RSA_PKCS1_PSS_PADDING);
      EVP_PKEY_CTX_set_rsa_pss_saltlen(settings, RSA_PSS_SALTLEN_DIGEST);
    }
    std::string out(1'024, '\0');
    std::size_t size = out.size();
    if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size,
                       reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1) {
      throw std::runtime_error("no signature");
    }
    out.resize(size);
    return kind_ == "EC" ? without_der(out) : out;
  }

  // A token of this header and these claims. Its signature is that of the key, whatever the header says.
  [[nodiscard]] std::string token(const nlohmann::json& header,
                                  const nlohmann::json& claims) const {
    return token_of(header.dump(), claims.dump(), header.value("alg", "") == "PS256");
  }
  [[nodiscard]] std::string token_of(std::string_view header, std::string_view claims,
                                     bool is_pss = false) const {
    const auto text = base64url_encode(header) + "." + base64url_encode(claims);
    return text + "." + base64url_encode(sign(text, is_pss));
  }

 private:
  [[nodiscard]] std::string number(const char* name, int size) const {
    BIGNUM* value = nullptr;
    EVP_PKEY_get_bn_param(key_.get(), name, &value);
    std::string bytes(static_cast<std::size_t>(size > 0 ? size : BN_num_bytes(value)), '\0');
    BN_bn2binpad(value, reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(bytes.size()));
    BN_free(value);
    return base64url_encode(bytes);
  }
  // r and s, 32 bytes each.
  static std::string without_der(const std::string& der) {
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* const numbers = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
    std::string bytes(64, '\0');
    auto* out = reinterpret_cast<unsigned char*>(bytes.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(numbers), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(numbers), out + 32, 32);
    ECDSA_SIG_free(numbers);
    return bytes;
  }

  std::string kind_;
  std::shared_ptr<EVP_PKEY> key_;
};

// Keys that tests share, since an RSA key takes a while.
inline const TestSigner& rsa_signer() {
  static const TestSigner signer("RSA");
  return signer;
}
inline const TestSigner& other_rsa_signer() {
  static const TestSigner signer("RSA");
  return signer;
}

}  // namespace gitops::control_plane_server::sso
