#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "app-proxy/git/failure_codes.hpp"
#include "common/core/credential.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops::app_proxy {

// Signs commits with an SSH key, as `git commit -S` does with gpg.format=ssh: the signature of
// openssh's PROTOCOL.sshsig, armored, for the namespace "git". Immutable; any thread.
class CommitSigner {
 public:
  // Reads a private key in OpenSSH's format (openssh's PROTOCOL.key): "-----BEGIN OPENSSH PRIVATE
  // KEY-----". Accepts only Ed25519 without a passphrase; other keys are `invalid_argument`, a
  // damaged one is `invalid_data`. Messages contain nothing of the key.
  static Result<CommitSigner> from_openssh_key(std::string_view text);

  // Returns the armored signature for the field gpgsig of a commit.
  [[nodiscard]] std::string sign(std::string_view commit) const;
  // Returns a line for git's allowed signers: "ssh-ed25519 AAAA…".
  [[nodiscard]] std::string public_key() const;

 private:
  explicit CommitSigner(Secret seed);
  Secret seed_;
  std::string public_blob_;
};

// The signer of a mounted key file. Reads the file again when it changes. Loop thread.
class SigningKey {
 public:
  explicit SigningKey(std::string file) : file_(file), key_(Credential::file(std::move(file))) {}
  // Returns the present signer. kNoSigningKey when there is no usable key. Then nothing may be
  // committed, since a server that requires signatures refuses unsigned commits.
  Result<std::shared_ptr<const CommitSigner>> current();

 private:
  std::string file_;
  Credential key_;
  Secret read_;
  Result<std::shared_ptr<const CommitSigner>> signer_ = nullptr;
};

}  // namespace gitops::app_proxy
