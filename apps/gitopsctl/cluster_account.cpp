#include "gitopsctl/cluster_account.hpp"

#include <algorithm>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/yaml_text.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

constexpr std::size_t kMaxName = 63;
constexpr const char* kBinding = "argocd-manager-role-binding";
constexpr const char* kTokenSecret = "argocd-manager-long-lived-token";
constexpr const char* kRbac = "rbac.authorization.k8s.io";

AccountObject account_object(k8s::Resource resource, k8s::ObjectKey key, Json more) {
  Json metadata{{"name", key.name}};
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  Json object{{"apiVersion", resource.api_version()},
              {"kind", resource.kind},
              {"metadata", std::move(metadata)}};
  object.merge_patch(more);
  return {.resource = std::move(resource), .key = std::move(key), .object = std::move(object)};
}

// An empty map is an empty text.
std::string encoded_map(const Json& map) {
  if (map.empty()) return {};
  return base64_encode(json_to_yaml(to_text(map)).value());
}

bool is_lower_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

k8s::ObjectKey token_secret(const std::string& system_namespace) {
  return {.ns = system_namespace, .name = kTokenSecret};
}

std::vector<AccountObject> account_objects(const std::string& system_namespace) {
  const std::string account(kClusterAccount);
  const std::string role(kClusterRole);
  const Json all = Json::array({"*"});
  const Json rules = Json::array({{{"apiGroups", all}, {"resources", all}, {"verbs", all}},
                                  {{"nonResourceURLs", all}, {"verbs", all}}});
  return {
      account_object(k8s::resources::kServiceAccounts, {system_namespace, account}, Json::object()),
      account_object({kRbac, "v1", "clusterroles", "ClusterRole", false}, {"", role},
                     {{"rules", rules}}),
      account_object({kRbac, "v1", "clusterrolebindings", "ClusterRoleBinding", false},
                     {"", kBinding},
                     {{"roleRef", {{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", role}}},
                      {"subjects", Json::array({{{"kind", "ServiceAccount"},
                                                 {"name", account},
                                                 {"namespace", system_namespace}}})}}),
      account_object(
          k8s::resources::kSecrets, token_secret(system_namespace),
          {{"type", "kubernetes.io/service-account-token"},
           {"metadata", {{"annotations", {{"kubernetes.io/service-account.name", account}}}}}})};
}

std::string manifests_text(const std::vector<AccountObject>& objects) {
  std::string text;
  for (const AccountObject& object : objects) {
    if (!text.empty()) text += "---\n";
    text += json_to_yaml(to_text(object.object)).value();
  }
  return text;
}

Result<std::optional<Secret>> token_of(std::string_view secret_json) {
  const Json secret = parse_json_object(secret_json);
  if (string_at(secret, {"kind"}) != "Secret") {
    return fail(ErrorCode::protocol, "the answer is not a Secret");
  }
  const auto encoded = string_at(secret, {"data", "token"});
  if (encoded.empty()) return std::optional<Secret>();
  auto token = base64_decode(encoded);
  if (!token || token->empty()) return fail(ErrorCode::protocol, "the token is not base64");
  return std::optional<Secret>(std::move(*token));
}

std::string cluster_name_mistake(std::string_view name) {
  const auto is_inner = [](char c) { return is_lower_alphanumeric(c) || c == '-'; };
  const bool is_valid = !name.empty() && name.size() <= kMaxName && name.front() >= 'a' &&
                        name.front() <= 'z' && is_lower_alphanumeric(name.back()) &&
                        std::ranges::all_of(name, is_inner);
  return is_valid ? std::string()
                  : "a name of a cluster has at most 63 lower-case letters, digits and '-', begins "
                    "with a letter and does not end with '-'";
}

Result<Json> key_values(std::string_view flag, const std::vector<std::string>& items) {
  Json map = Json::object();
  for (const std::string& item : items) {
    const auto equals = item.find('=');
    if (equals == std::string::npos || equals == 0) {
      return usage_error("--" + std::string(flag) + " is KEY=VALUE,…; this is not: " + item);
    }
    const auto key = item.substr(0, equals);
    if (map.contains(key)) {
      return usage_error("--" + std::string(flag) + " has " + key + " twice");
    }
    map[key] = item.substr(equals + 1);
  }
  return map;
}

Secret add_request(const AddedCluster& cluster) {
  Json target{{"server", cluster.server}};
  if (cluster.tls.insecure_skip_verify) {
    target["insecure-skip-tls-verify"] = true;
  } else if (!cluster.tls.ca_pem.empty()) {
    target["certificate-authority-data"] = base64_encode(cluster.tls.ca_pem);
  }
  if (!cluster.tls.server_name.empty()) target["tls-server-name"] = cluster.tls.server_name;
  const std::string& name = cluster.name;
  const Json context{{"cluster", name}, {"user", name}};
  const Json kubeconfig{
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"clusters", Json::array({{{"name", name}, {"cluster", target}}})},
      {"contexts", Json::array({{{"name", name}, {"context", context}}})},
      {"current-context", name},
      {"users", Json::array({{{"name", name}, {"user", {{"token", cluster.token.reveal()}}}}})}};
  return Secret(to_text(Json{{"name", name},
                             {"kubeConfig", base64_encode(to_text(kubeconfig))},
                             {"labels", encoded_map(cluster.labels)},
                             {"annotations", encoded_map(cluster.annotations)}}));
}

}  // namespace gitops::ctl
