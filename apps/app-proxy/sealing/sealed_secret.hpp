#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// Objects SealedSecret (bitnami.com/v1alpha1): Secrets that may lie in Git, since only the controller of Sealed Secrets
// can read them. Pure but for randomness.
namespace gitops::app_proxy {

// Where the controller unseals it.
enum class SealScope {
  strict,        // only by this name in this namespace
  cluster_wide,  // by every name in every namespace of a cluster that has the key
};

// A Secret that is to be sealed.
struct PlainSecret {
  std::string name;
  std::string secret_namespace = {};  // needed for the scope strict; not written for the other one
  SealScope scope = SealScope::strict;
  std::vector<std::pair<std::string, std::string>> labels = {};       // of the Secret as well
  std::vector<std::pair<std::string, std::string>> annotations = {};  // of the SealedSecret alone
  std::vector<std::pair<std::string, Secret>> values = {};

  // Binds the sealed values to their place.
  [[nodiscard]] std::string label() const;
};

// One value: the length of an RSA ciphertext in two bytes, that ciphertext (RSA-OAEP with the label) of a new key, and
// the value in AES-256-GCM under it with a nonce of zeros, which no other value sees. Errors as rsa_oaep_encrypt().
Result<std::string> seal_value(std::string_view certificate, const Secret& value,
                               std::string_view label);
// The object as YAML. Two calls give different texts.
Result<std::string> sealed_secret_manifest(std::string_view certificate, const PlainSecret& secret);

}  // namespace gitops::app_proxy
