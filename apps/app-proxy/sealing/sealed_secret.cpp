#include "app-proxy/sealing/sealed_secret.hpp"

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/yaml_text.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

constexpr const char* kClusterWide = "sealedsecrets.bitnami.com/cluster-wide";

Json object_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json object = Json::object();
  for (const auto& [key, value] : pairs) object[key] = value;
  return object;
}

}  // namespace

std::string PlainSecret::label() const {
  return scope == SealScope::strict ? secret_namespace + "/" + name : std::string();
}

Result<std::string> seal_value(std::string_view certificate, const Secret& value,
                               std::string_view label) {
  const Secret key(random_bytes(kSealKeySize));
  const auto hidden_key = rsa_oaep_encrypt(certificate, key.reveal(), label);
  if (!hidden_key) return hidden_key;
  std::string out;
  out += static_cast<char>(hidden_key->size() >> 8U);
  out += static_cast<char>(hidden_key->size() & 0xffU);
  out += *hidden_key;
  out += seal(key, std::string(kSealNonceSize, '\0'), value.reveal());
  return out;
}

Result<std::string> sealed_secret_manifest(std::string_view certificate,
                                           const PlainSecret& secret) {
  Json sealed = Json::object();
  for (const auto& [key, value] : secret.values) {
    const auto hidden = seal_value(certificate, value, secret.label());
    if (!hidden) return hidden;
    sealed[key] = base64_encode(*hidden);
  }
  Json metadata{{"name", secret.name}};
  Json annotations = object_of(secret.annotations);
  Json secret_annotations = Json::object();
  if (secret.scope == SealScope::strict) {
    metadata["namespace"] = secret.secret_namespace;
  } else {
    annotations[kClusterWide] = "true";
    secret_annotations[kClusterWide] = "true";
  }
  Json secret_metadata = metadata;
  if (!secret.labels.empty()) {
    metadata["labels"] = object_of(secret.labels);
    secret_metadata["labels"] = object_of(secret.labels);
  }
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  if (!secret_annotations.empty()) secret_metadata["annotations"] = std::move(secret_annotations);
  const Json object{
      {"apiVersion", "bitnami.com/v1alpha1"},
      {"kind", "SealedSecret"},
      {"metadata", std::move(metadata)},
      {"spec",
       {{"encryptedData", std::move(sealed)},
        {"template", {{"metadata", std::move(secret_metadata)}, {"type", "Opaque"}}}}}};
  return json_to_yaml(to_text(object));
}

}  // namespace gitops::app_proxy
