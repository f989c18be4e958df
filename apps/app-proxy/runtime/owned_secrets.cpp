#include "app-proxy/runtime/owned_secrets.hpp"

#include <initializer_list>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

constexpr const char* kManagedBy = "app.kubernetes.io/managed-by";
constexpr const char* kUs = "gitops-app-proxy";
// Label of Argo CD.
constexpr const char* kSecretType = "argocd.argoproj.io/secret-type";
constexpr const char* kRepoCreds = "repo-creds";

Secret value_of(const Json& object, const char* key) {
  auto bytes = base64_decode(string_at(object, {"data", key}));
  return bytes ? Secret(std::move(*bytes)) : Secret();
}

std::string secret_object(std::string_view ns, std::string_view name, std::string_view before,
                          std::initializer_list<std::pair<const char*, const Secret*>> values) {
  Json object = before.empty() ? Json::object() : parse_json_object(before);
  if (!object.contains("metadata")) {
    object = {{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", {{"name", name}, {"namespace", ns}, {"labels", {{kManagedBy, kUs}}}}},
              {"type", "Opaque"}};
  }
  if (!object["data"].is_object()) object["data"] = Json::object();
  for (const auto& [key, value] : values) object["data"][key] = base64_encode(value->reveal());
  return object.dump();
}

}  // namespace

RuntimeSecret read_runtime_secret(std::string_view object) {
  const auto json = parse_json_object(object);
  return {.token = value_of(json, "token"), .iv = value_of(json, "encryptionIV")};
}

Secret read_argocd_token(std::string_view object) {
  return value_of(parse_json_object(object), "token");
}

std::string runtime_secret_object(std::string_view ns, const RuntimeSecret& content,
                                  std::string_view before) {
  return secret_object(ns, kRuntimeSecret, before,
                       {{"token", &content.token}, {"encryptionIV", &content.iv}});
}

std::string argocd_token_object(std::string_view ns, const Secret& token, std::string_view before) {
  return secret_object(ns, kArgoCdTokenSecret, before, {{"token", &token}});
}

std::string repo_creds_url(const http::Url& repository) {
  return repository.scheme + "://" + repository.host_header() + "/";
}

std::string repo_creds_object(std::string_view ns, const RepoCreds& creds,
                              std::string_view before) {
  const Secret url(creds.url);
  const Secret username(creds.username);
  const Secret type("git");
  Json object = parse_json_object(secret_object(
      ns, kRepoCredsSecret, before,
      {{"url", &url}, {"username", &username}, {"password", &creds.password}, {"type", &type}}));
  object["metadata"]["labels"][kSecretType] = kRepoCreds;
  return object.dump();
}

RepoCredsStep repo_creds_step(std::string_view stored, const RepoCreds& wanted) {
  if (stored.empty()) return RepoCredsStep::write;
  const auto object = parse_json_object(stored);
  if (string_at(object, {"metadata", "labels", kManagedBy}) != kUs) return RepoCredsStep::leave;
  const bool is_same = string_at(object, {"metadata", "labels", kSecretType}) == kRepoCreds &&
                       value_of(object, "url").reveal() == wanted.url &&
                       value_of(object, "username").reveal() == wanted.username &&
                       value_of(object, "password") == wanted.password &&
                       value_of(object, "type").reveal() == "git";
  return is_same ? RepoCredsStep::keep : RepoCredsStep::write;
}

SecretStep secret_step(const SecretView& view) {
  const bool may_enroll = view.is_leader && view.has_user_token;
  if (view.is_refused && may_enroll) return SecretStep::enroll;
  if (view.stored.is_whole()) return SecretStep::keep;
  if (!view.stored.token.empty() || !view.known.token.empty()) {
    return view.is_leader ? SecretStep::write : SecretStep::wait;
  }
  return may_enroll ? SecretStep::enroll : SecretStep::wait;
}

}  // namespace gitops::app_proxy
