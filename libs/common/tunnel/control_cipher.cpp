#include "common/tunnel/control_cipher.hpp"

#include <algorithm>

namespace gitops::tunnel {
namespace {

constexpr std::string_view kSalt = "frp";
constexpr unsigned kIterations = 64;

}  // namespace

Secret control_key(const Secret& token) {
  return pbkdf2_hmac_sha1(token.reveal(), kSalt, kIterations, Aes128Cfb::kKeySize);
}

ControlEncryptor::ControlEncryptor(const Secret& key, std::string_view iv)
    : cipher_(Aes128Cfb::Direction::encrypt, key, iv), iv_(iv) {}

void ControlEncryptor::encrypt(std::string& out, std::size_t start) {
  if (out.size() == start) return;
  cipher_.apply(std::span(out).subspan(start));
  out.insert(start, iv_);
  iv_.clear();
}

std::span<char> ControlDecryptor::decrypt(std::span<char> bytes) {
  if (!cipher_) {
    const auto size = std::min(bytes.size(), Aes128Cfb::kIvSize - iv_.size());
    iv_.append(bytes.data(), size);
    bytes = bytes.subspan(size);
    if (iv_.size() < Aes128Cfb::kIvSize) return {};
    cipher_.emplace(Aes128Cfb::Direction::decrypt, key_, iv_);
  }
  cipher_->apply(bytes);
  return bytes;
}

}  // namespace gitops::tunnel
