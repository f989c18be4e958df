#include "unseal.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace gitops::test {
namespace {

constexpr std::size_t kTag = 16;

const unsigned char* bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

std::optional<std::string> session_key(const std::string& private_key, std::string_view hidden,
                                       std::string_view label) {
  const std::unique_ptr<BIO, Free> bio(
      BIO_new_mem_buf(private_key.data(), static_cast<int>(private_key.size())));
  const std::unique_ptr<EVP_PKEY, Free> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  const std::unique_ptr<EVP_PKEY_CTX, Free> context(EVP_PKEY_CTX_new(key.get(), nullptr));
  EVP_PKEY_decrypt_init(context.get());
  EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_OAEP_PADDING);
  EVP_PKEY_CTX_set_rsa_oaep_md(context.get(), EVP_sha256());
  EVP_PKEY_CTX_set_rsa_mgf1_md(context.get(), EVP_sha256());
  if (!label.empty()) {
    EVP_PKEY_CTX_set0_rsa_oaep_label(context.get(), OPENSSL_memdup(label.data(), label.size()),
                                     static_cast<int>(label.size()));
  }
  std::string out(static_cast<std::size_t>(EVP_PKEY_get_size(key.get())), '\0');
  std::size_t size = out.size();
  if (EVP_PKEY_decrypt(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size,
                       bytes(hidden), hidden.size()) != 1) {
    return std::nullopt;
  }
  out.resize(size);
  return out;
}

}  // namespace

std::optional<std::string> unseal_value(const std::string& private_key, std::string_view sealed,
                                        std::string_view label) {
  if (sealed.size() < 2) return std::nullopt;
  const std::size_t size = bytes(sealed)[0] * 256U + bytes(sealed)[1];
  if (sealed.size() < 2 + size + kTag) return std::nullopt;
  const auto key = session_key(private_key, sealed.substr(2, size), label);
  if (!key || key->size() != 32) return std::nullopt;
  const auto hidden = sealed.substr(2 + size, sealed.size() - 2 - size - kTag);
  std::string tag(sealed.substr(sealed.size() - kTag));
  const std::array<unsigned char, 12> nonce{};
  const std::unique_ptr<EVP_CIPHER_CTX, Free> cipher(EVP_CIPHER_CTX_new());
  EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes(*key), nonce.data());
  std::string plain(hidden.size(), '\0');
  int written = 0;
  EVP_DecryptUpdate(cipher.get(), reinterpret_cast<unsigned char*>(plain.data()), &written,
                    bytes(hidden), static_cast<int>(hidden.size()));
  EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTag, tag.data());
  std::array<unsigned char, 16> rest{};
  if (EVP_DecryptFinal_ex(cipher.get(), rest.data(), &written) != 1) return std::nullopt;
  return plain;
}

}  // namespace gitops::test
