#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// Objects SealedSecret (bitnami.com/v1alpha1): Secrets that are safe in Git, since only the
// controller of Sealed Secrets can decrypt them. Pure except for randomness.
namespace gitops::app_proxy {

// Names and namespaces for which the controller unseals a Secret.
enum class SealScope {
  strict,        // only by this name in this namespace
  cluster_wide,  // by every name in every namespace of a cluster that has the key
};

// A Secret to be sealed.
struct PlainSecret {
  std::string name;
  std::string secret_namespace = {};  // required for `strict`; not written otherwise
  SealScope scope = SealScope::strict;
  std::vector<std::pair<std::string, std::string>> labels = {};       // of the Secret as well
  std::vector<std::pair<std::string, std::string>> annotations = {};  // of the SealedSecret only
  std::vector<std::pair<std::string, Secret>> values = {};

  // Returns the OAEP label that binds the sealed values to their name and namespace.
  [[nodiscard]] std::string label() const;
};

// Seals one value. The result is the length of an RSA ciphertext in two bytes, that ciphertext
// (RSA-OAEP with the label) of a new key, and the value in AES-256-GCM with that key and a nonce of
// zeros. Each key is used for one value. Errors as rsa_oaep_encrypt().
Result<std::string> seal_value(std::string_view certificate, const Secret& value,
                               std::string_view label);
// Returns the object as YAML. Repeated calls return different texts.
Result<std::string> sealed_secret_manifest(std::string_view certificate, const PlainSecret& secret);

}  // namespace gitops::app_proxy
