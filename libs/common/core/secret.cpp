#include "common/core/secret.hpp"

#include <openssl/crypto.h>

namespace gitops {

Secret::Secret(std::string text) : text_(text.begin(), text.end()) {
  OPENSSL_cleanse(text.data(), text.size());
}

Secret::Secret(const Secret& other) = default;

Secret::Secret(Secret&& other) noexcept {
  text_.swap(other.text_);
}

Secret& Secret::operator=(Secret other) noexcept {
  text_.swap(other.text_);
  return *this;
}

Secret::~Secret() {
  OPENSSL_cleanse(text_.data(), text_.size());
}

bool Secret::operator==(const Secret& other) const {
  return text_.size() == other.text_.size() &&
         CRYPTO_memcmp(text_.data(), other.text_.data(), text_.size()) == 0;
}

}  // namespace gitops
