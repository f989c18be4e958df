#include "app-proxy/integrations/token_seal.hpp"

#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

// Encodes the parts with their lengths, so that different owners never have the same text.
std::string associated_data(const TokenOwner& owner) {
  std::string out = "git token v1";
  for (const auto* part :
       {&owner.user_id, &owner.integration, &owner.account_id, &owner.api_root}) {
    out += '\n';
    out += std::to_string(part->size());
    out += ':';
    out += *part;
  }
  return out;
}

// Associated data of a text that is not a token. It begins with another word than a token's.
std::string associated_data(std::string_view purpose) {
  return "purpose v1\n" + std::string(purpose);
}

}  // namespace

void TokenSeal::use(const Secret& runtime_token, const Secret& store_iv) {
  if (runtime_token.empty()) return;
  auto key = hkdf_sha256(runtime_token.reveal(), store_iv.reveal(),
                         "gitops app-proxy: tokens of Git users", kSealKeySize);
  const auto sum = hmac_sha256(key.reveal(), "key id");
  auto id = hex_encode(bytes_of(sum).substr(0, 8));
  current_ = id;
  keys_.insert_or_assign(std::move(id), std::move(key));
}

Result<SealedToken> TokenSeal::seal(const TokenOwner& owner, const Secret& token) const {
  return seal_with(associated_data(owner), token);
}

Result<Secret> TokenSeal::open(const TokenOwner& owner, const SealedToken& sealed) const {
  return open_with(associated_data(owner), sealed);
}

Result<SealedToken> TokenSeal::seal_for(std::string_view purpose, const Secret& text) const {
  return seal_with(associated_data(purpose), text);
}

Result<Secret> TokenSeal::open_for(std::string_view purpose, const SealedToken& sealed) const {
  return open_with(associated_data(purpose), sealed);
}

Result<SealedToken> TokenSeal::seal_with(const std::string& associated, const Secret& text) const {
  if (!has_key()) {
    return fail(ErrorCode::unavailable,
                "the runtime is not registered yet, so Git tokens cannot be stored; try again "
                "later");
  }
  SealedToken out{.key_id = current_, .nonce = random_bytes(kSealNonceSize), .text = {}};
  out.text = gitops::seal(keys_.at(current_), out.nonce, text.reveal(), associated);
  return out;
}

Result<Secret> TokenSeal::open_with(const std::string& associated,
                                    const SealedToken& sealed) const {
  const auto key = keys_.find(sealed.key_id);
  if (key == keys_.end() || sealed.nonce.size() != kSealNonceSize) {
    return fail(ErrorCode::invalid_data, "the Git token was stored with a key that is not known");
  }
  auto plain = unseal(key->second, sealed.nonce, sealed.text, associated);
  if (!plain) return fail(ErrorCode::invalid_data, "the stored Git token cannot be decrypted");
  return Secret(std::move(*plain));
}

}  // namespace gitops::app_proxy
