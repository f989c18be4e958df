#include "common/core/secret.hpp"

#include "common/core/crypto.hpp"

namespace gitops {

Secret::Secret(std::string text) : text_(text.begin(), text.end()) {
  wipe(text.data(), text.size());
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
  wipe(text_.data(), text_.size());
}

bool Secret::operator==(const Secret& other) const {
  return equal_in_constant_time(reveal(), other.reveal());
}

}  // namespace gitops
