#include "gitopsctl/manifest.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::ctl {

namespace {

using Json = nlohmann::json;

constexpr const char* kLeftOut = "[left out]";

// Variables whose values the charts set; none is a secret. Longer names of a family are covered by its beginning.
constexpr auto kPlainVariables =
    std::to_array<std::string_view>({"API_LISTEN_ADDRESS",
                                     "API_PORT",
                                     "APP_PROXY_URL",
                                     "APP_QUEUE_SIZE",
                                     "ARGOCD_APPLICATION_NAMESPACES",
                                     "ARGOCD_CA_FILE",
                                     "ARGOCD_INSECURE",
                                     "ARGOCD_NAMESPACE",
                                     "ARGOCD_SERVER",
                                     "ARGOCD_SERVER_ROOTPATH",
                                     "ARGO_CD_INSECURE",
                                     "ARGO_CD_URL",
                                     "ARGO_CD_USERNAME",
                                     "ARGO_WORKFLOWS_URL",
                                     "CF_HOST",
                                     "CHART_VERSION",
                                     "CLUSTER",
                                     "CLUSTER_CHUNK_SIZE",
                                     "CODEFRESH_SSL_CERT_PATH",
                                     "CODEFRESH_TLS_INSECURE",
                                     "CODEFRESH_URL",
                                     "CORS",
                                     "DRAIN_DELAY",
                                     "DRAIN_TIMEOUT",
                                     "EVENT_REPORTER_REPLICAS",
                                     "EVENT_REPORTER_RESEND_ON_REVISION",
                                     "GRAPHQL_PLAYGROUND",
                                     "HEARTBEAT_INTERVAL",
                                     "HTTPS_PROXY",
                                     "HTTP_PROXY",
                                     "NO_PROXY",
                                     "INGRESS_CLASS_NAME",
                                     "INGRESS_CONTROLLER",
                                     "INGRESS_HOST",
                                     "INSTALLATION_TYPE",
                                     "IS_CONFIGURATION_RUNTIME",
                                     "IS_EXTERNAL_ARGOCD",
                                     "IS_NAMESPACED_RUNTIME",
                                     "LEDGER_FILE",
                                     "LISTEN_ADDRESS",
                                     "LISTEN_PORT",
                                     "LOG_FORMAT",
                                     "LOG_LEVEL",
                                     "MAX_APP_RETRIES",
                                     "METRICS_LISTEN_ADDRESS",
                                     "NAMESPACE",
                                     "NODE_EXTRA_CA_CERTS",
                                     "PLUGIN_CA_FILE",
                                     "PLUGIN_OPERATIONS",
                                     "PLUGIN_TIMEOUT",
                                     "PLUGIN_URL",
                                     "POD_NAME",
                                     "POD_NAMESPACE",
                                     "RECONCILE_INTERVAL",
                                     "REPORTER_MODE",
                                     "REPORT_ALL_REPLICASETS",
                                     "REPORT_KINDS",
                                     "REPORT_MANAGED_CLUSTERS",
                                     "REPOS_DIR",
                                     "RESOURCE_THREADINESS",
                                     "ROUTES_FILE",
                                     "RUNTIMES_FILE",
                                     "RUNTIME_NAME",
                                     "RUNTIME_VERSION",
                                     "SKIP_PERMISSIONS_VALIDATION",
                                     "SUBDOMAIN_HOST",
                                     "SWEEP_INTERVAL",
                                     "THREADINESS",
                                     "TLS_CERTIFICATE_FILE",
                                     "TLS_KEY_FILE",
                                     "TRUSTED_PROXIES",
                                     "TUNNEL_FORWARD_TO_HOST",
                                     "TUNNEL_FORWARD_TO_LOCATION",
                                     "TUNNEL_FORWARD_TO_PORT",
                                     "TUNNEL_IPS_ALLOW_LIST",
                                     "TUNNEL_LINKS",
                                     "TUNNEL_POOL_SIZE",
                                     "TUNNEL_PORT",
                                     "TUNNEL_REQUIRE_TLS",
                                     "TUNNEL_SERVERS",
                                     "TUNNEL_SERVER_CA_FILE",
                                     "TUNNEL_SERVER_HOST",
                                     "TUNNEL_SERVER_INSECURE_SKIP_VERIFY",
                                     "TUNNEL_SERVER_LINKS",
                                     "TUNNEL_SERVER_PORT",
                                     "TUNNEL_SERVER_PROTOCOL",
                                     "TUNNEL_SERVER_TLS",
                                     "TUNNEL_SUBDOMAIN_PREFIX",
                                     "WORKFLOW_NAMESPACES"});

constexpr auto kPlainAnnotations = std::to_array<std::string_view>(
    {"meta.helm.sh/", "checksum/", "prometheus.io/", "deployment.kubernetes.io/",
     "control-plane.alpha.kubernetes.io/", "kubernetes.io/config."});

bool is_shown_annotation(std::string_view name) {
  return std::ranges::any_of(kPlainAnnotations,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

// Flags that name a secret, and their values in the next word.
void leave_out_flags(Json& words) {
  bool is_value = false;
  for (Json& word : words) {
    if (!word.is_string()) continue;
    const auto text = word.get<std::string>();
    const auto equals = text.find('=');
    const bool is_secret = text.starts_with('-') && names_secret(text.substr(0, equals));
    if (is_value && !text.starts_with('-')) {
      word = kLeftOut;
    } else if (is_secret && equals != std::string::npos) {
      word = text.substr(0, equals + 1) + kLeftOut;
    }
    is_value = is_secret && equals == std::string::npos;
  }
}

void leave_out_values(Json& list, bool may_be_shown) {
  for (Json& item : list) {
    if (!item.is_object() || !item.contains("value")) continue;
    const auto name = string_at(item, {"name"});
    const bool is_shown =
        may_be_shown && std::ranges::find(kPlainVariables, name) != kPlainVariables.end();
    if (!is_shown) item["value"] = kLeftOut;
  }
}

void walk(Json& json) {
  if (json.is_array()) {
    for (Json& item : json) walk(item);
  }
  if (!json.is_object()) return;
  json.erase("managedFields");
  for (auto& [name, value] : json.items()) {
    if (name == "annotations" && value.is_object()) {
      for (auto& [key, text] : value.items()) {
        if (!is_shown_annotation(key)) text = kLeftOut;
      }
    } else if (name == "binaryData" && value.is_object()) {
      for (auto& [key, bytes] : value.items()) bytes = kLeftOut;
    } else if (value.is_array() && (name == "args" || name == "command")) {
      leave_out_flags(value);
    } else if (value.is_array() && (name == "env" || name == "httpHeaders")) {
      leave_out_values(value, name == "env");
    } else {
      walk(value);
    }
  }
}

// Adds the members of these names that are names of Secrets.
void find_names(const Json& json, std::vector<std::string>& names) {
  if (json.is_array()) {
    for (const Json& item : json) find_names(item, names);
  }
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    if (name == "secretKeyRef" || name == "secretRef" || name == "secret") {
      for (const char* member : {"name", "secretName"}) {
        if (auto found = string_at(value, {member}); !found.empty()) {
          names.push_back(std::move(found));
        }
      }
    } else if (name == "imagePullSecrets") {
      for (const Json& item : value) names.push_back(string_at(item, {"name"}));
    } else {
      find_names(value, names);
    }
  }
}

}  // namespace

Json printed_object(Json object) {
  walk(object);
  return object;
}

Json printed_secret(const Json& secret) {
  Json keys = Json::array();
  for (const char* member : {"data", "stringData"}) {
    const Json& values = value_at(secret, {member});
    if (!values.is_object()) continue;
    for (const auto& [key, value] : values.items()) keys.push_back(key);
  }
  return {{"name", string_at(secret, {"metadata", "name"})},
          {"type", string_at(secret, {"type"})},
          {"keys", std::move(keys)}};
}

void hide_values(const Json& secret, Redactor& redactor) {
  const Json& data = value_at(secret, {"data"});
  if (!data.is_object()) return;
  for (const auto& [key, value] : data.items()) {
    if (!value.is_string()) continue;
    const auto& text = value.get_ref<const std::string&>();
    redactor.hide(text);
    if (const auto bytes = base64_decode(text)) redactor.hide(*bytes);
  }
}

std::vector<std::string> secrets_of_pod(const Json& pod) {
  std::vector<std::string> names;
  find_names(value_at(pod, {"spec"}), names);
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

}  // namespace gitops::ctl
