#include "app-proxy/git/commit_signer.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::string_view kType = "ssh-ed25519";
constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view kEnd = "-----END OPENSSH PRIVATE KEY-----";
constexpr std::size_t kMaxKeyLength = 64UL * 1024;

void add_number(std::string& out, std::size_t number) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    out += static_cast<char>((number >> shift) & 0xffU);
  }
}

// Appends an SSH "string" (RFC 4251, section 5): a length of four bytes and the bytes.
void add_text(std::string& out, std::string_view text) {
  add_number(out, text.size());
  out += text;
}

std::optional<std::uint32_t> take_number(std::string_view& bytes) {
  if (bytes.size() < 4) return std::nullopt;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = (number << 8U) | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(4);
  return number;
}

std::optional<std::string_view> take_text(std::string_view& bytes) {
  const auto size = take_number(bytes);
  if (!size || *size > bytes.size()) return std::nullopt;
  const auto text = bytes.substr(0, *size);
  bytes.remove_prefix(*size);
  return text;
}

std::unexpected<Error> refuse(ErrorCode code, std::string_view why) {
  return fail(code, "the signing key " + std::string(why));
}

std::string public_blob_of(std::string_view key) {
  std::string blob;
  add_text(blob, kType);
  add_text(blob, key);
  return blob;
}

}  // namespace

CommitSigner::CommitSigner(Secret seed)
    : seed_(std::move(seed)), public_blob_(public_blob_of(ed25519_public_key(seed_))) {}

Result<CommitSigner> CommitSigner::from_openssh_key(std::string_view text) {
  const auto damaged = [] { return refuse(ErrorCode::invalid_data, "is damaged"); };
  const auto begin = text.find(kBegin);
  if (begin == std::string_view::npos || text.size() > kMaxKeyLength) {
    return refuse(ErrorCode::invalid_argument, "is no private key in OpenSSH's format");
  }
  text.remove_prefix(begin + kBegin.size());
  const auto end = text.find(kEnd);
  if (end == std::string_view::npos) return damaged();
  auto decoded = base64_decode(text.substr(0, end));
  if (!decoded) return damaged();
  const Secret all(std::move(*decoded));
  std::string_view bytes = all.reveal();
  constexpr std::string_view kMagic("openssh-key-v1\0", 15);
  if (!bytes.starts_with(kMagic)) return damaged();
  bytes.remove_prefix(kMagic.size());
  const auto cipher = take_text(bytes);
  const auto kdf = take_text(bytes);
  const auto kdf_options = take_text(bytes);
  const auto keys = take_number(bytes);
  const auto public_key = take_text(bytes);
  auto secret = take_text(bytes);
  if (!cipher || !kdf || !kdf_options || !keys || !public_key || !secret) return damaged();
  if (*cipher != "none") return refuse(ErrorCode::invalid_argument, "has a passphrase; remove it");
  if (*keys != 1) return damaged();
  const auto first_check = take_number(*secret);
  const auto second_check = take_number(*secret);
  const auto type = take_text(*secret);
  if (!first_check || first_check != second_check || !type) return damaged();
  if (*type != kType) {
    return refuse(ErrorCode::invalid_argument, "is not of type ssh-ed25519");
  }
  const auto own_public = take_text(*secret);
  const auto pair = take_text(*secret);  // the seed and the public key
  if (!own_public || !pair || own_public->size() != kEd25519KeySize ||
      pair->size() != 2 * kEd25519KeySize) {
    return damaged();
  }
  CommitSigner signer(Secret(std::string(pair->substr(0, kEd25519KeySize))));
  if (signer.public_blob_ != *public_key) return damaged();
  return signer;
}

std::string CommitSigner::sign(std::string_view commit) const {
  constexpr std::string_view kMagic = "SSHSIG";
  constexpr std::string_view kNamespace = "git";
  constexpr std::string_view kHash = "sha256";
  std::string signed_text(kMagic);
  add_text(signed_text, kNamespace);
  add_text(signed_text, {});  // reserved
  add_text(signed_text, kHash);
  add_text(signed_text, bytes_of(sha256(commit)));
  std::string signature;
  add_text(signature, kType);
  add_text(signature, ed25519_sign(seed_, signed_text));
  std::string blob(kMagic);
  add_number(blob, 1);
  add_text(blob, public_blob_);
  add_text(blob, kNamespace);
  add_text(blob, {});
  add_text(blob, kHash);
  add_text(blob, signature);
  const std::string encoded = base64_encode(blob);
  constexpr std::size_t kLine = 70;
  std::string armored = "-----BEGIN SSH SIGNATURE-----\n";
  for (std::size_t at = 0; at < encoded.size(); at += kLine) {
    armored += encoded.substr(at, kLine) + "\n";
  }
  return armored + "-----END SSH SIGNATURE-----";
}

std::string CommitSigner::public_key() const {
  return std::string(kType) + " " + base64_encode(public_blob_);
}

Result<std::shared_ptr<const CommitSigner>> SigningKey::current() {
  Secret now = key_.current();
  const auto refused = [this](const std::string& why) {
    return std::unexpected(Error{
        .code = ErrorCode::unavailable, .message = file_ + ": " + why, .subcode = kNoSigningKey});
  };
  if (now.empty())
    return refused(key_.last_error().empty() ? "the file is empty" : key_.last_error());
  if (now == read_) return signer_;
  auto made = CommitSigner::from_openssh_key(now.reveal());
  if (made) {
    signer_ = std::make_shared<const CommitSigner>(std::move(*made));
  } else {
    signer_ = refused(made.error().message);
  }
  read_ = std::move(now);
  return signer_;
}

}  // namespace gitops::app_proxy
