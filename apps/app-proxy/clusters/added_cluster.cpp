#include "app-proxy/clusters/added_cluster.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/manifest_edit.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "common/http/url.hpp"
#include "k8s-client/config.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;
using Words = std::map<std::string, std::string>;

constexpr std::size_t kMaxKubeconfig = std::size_t{256} * 1024;
constexpr std::size_t kMaxMap = std::size_t{64} * 1024;
constexpr std::size_t kMaxEntries = 100;
constexpr std::size_t kMaxAnnotation = 4096;  // bytes of a value

constexpr std::string_view kTypeLabel = "argocd.argoproj.io/secret-type";
constexpr std::string_view kManagedBy = "managed-by";

std::unexpected<Error> mistake(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

enum class Map { labels, annotations };

Result<void> check_entry(Map which, std::string_view key, std::string_view value) {
  if (!is_label_key(key)) return mistake("a key is not one of Kubernetes");
  if (which == Map::annotations) {
    if (key == kManagedBy) return mistake("managed-by is set by the runtime");
    if (value.size() > kMaxAnnotation || value.contains('\0')) {
      return mistake("a value is too long or holds a NUL");
    }
    return {};
  }
  if (key == kTypeLabel) return mistake(std::string(kTypeLabel) + " is set by the runtime");
  if (!is_label_value(value)) return mistake("a value is not one of Kubernetes");
  return {};
}

// Returns the member of that name, decoded from base64; empty when there is none.
Result<std::string> decoded(const Json& body, const char* key, std::size_t limit) {
  const Json& value = value_at(body, {key});
  if (value.is_null()) return std::string();
  if (!value.is_string()) return mistake(std::string(key) + " must be a text");
  auto bytes = base64_decode(value.get_ref<const std::string&>());
  if (!bytes) return mistake(std::string(key) + " is not base64");
  if (bytes->size() > limit) return mistake(std::string(key) + " is too large");
  return bytes;
}

// Parses a flat YAML map.
Result<Words> parse_map(const Json& body, const char* key, Map which) {
  auto text = decoded(body, key, kMaxMap);
  if (!text) return std::unexpected(std::move(text.error()));
  const auto content = trimmed(*text);
  if (content.empty() || content == "{}" || content == "null") return Words();
  const auto leaves = read_leaves(*text, {});
  if (!leaves) return mistake(std::string(key) + ": " + leaves.error().message);
  if (leaves->size() > kMaxEntries) return mistake(std::string(key) + ": too many entries");
  Words words;
  for (const auto& leaf : *leaves) {
    const auto* name = leaf.path.size() == 1 ? std::get_if<std::string>(leaf.path.data()) : nullptr;
    if (name == nullptr) return mistake(std::string(key) + ": expected a map of texts");
    if (auto checked = check_entry(which, *name, leaf.value.text); !checked) {
      return mistake(std::string(key) + ": " + checked.error().message);
    }
    if (!words.emplace(*name, leaf.value.text).second) {
      return mistake(std::string(key) + ": a key is there twice");
    }
  }
  return words;
}

// Checks a name by the rules of the public command line and of Applications in the runtime's
// repository.
Result<std::string> parse_name(const Json& body) {
  const Json& name = value_at(body, {"name"});
  if (!name.is_string()) return mistake("name is missing");
  auto text = name.get<std::string>();
  if (auto checked = check_entity_name(text); !checked) {
    return mistake("name: " + checked.error().message);
  }
  if (!is_letter(text.front())) return mistake("name must begin with a letter");
  return text;
}

Result<void> check_host(const std::string& host, const net::AddressList& allowed) {
  boost::system::error_code no_address;
  const auto address = boost::asio::ip::make_address(host, no_address);
  if (!no_address) {
    if (net::is_special_address(address) && !allowed.contains(address)) {
      return mistake("kubeConfig: server: no cluster is at an address of this kind");
    }
    return {};
  }
  // Addresses in forms other than four numbers are not valid hosts of a URL.
  if (host == "localhost" || host.ends_with(".localhost")) {
    return mistake("kubeConfig: server: no cluster is at a host of this kind");
  }
  return {};
}

Json tls_of(const net::TlsOptions& given) {
  Json tls{{"insecure", given.insecure_skip_verify}};
  if (!given.ca_pem.empty()) tls["caData"] = base64_encode(given.ca_pem);
  if (!given.server_name.empty()) tls["serverName"] = given.server_name;
  if (!given.certificate_pem.empty()) {
    tls["certData"] = base64_encode(given.certificate_pem);
    tls["keyData"] = base64_encode(given.key_pem.reveal());
  }
  return tls;
}

Result<k8s::ClusterConfig> parse_kubeconfig(std::string text, const std::string& name) {
  // The path has no folder, so the parser cannot read a file by accident.
  auto config = k8s::kubeconfig_from_text({{.path = "kubeConfig", .text = std::move(text)}}, name,
                                          k8s::ExecPolicy::refuse);
  if (!config) return mistake(std::move(config.error().message));
  const auto& tls = config->tls;
  if (!tls.ca_file.empty() || !tls.certificate_file.empty() || !tls.key_file.empty() ||
      !config->token_file.empty()) {
    return mistake("kubeConfig: it names files, which are not sent with it; flatten it");
  }
  if (config->proxy) return mistake("kubeConfig: proxy-url is not supported");
  if (!config->server.is_tls()) return mistake("kubeConfig: server is not an https:// URL");
  if (!config->server.query.empty()) return mistake("kubeConfig: server has a query");
  if (config->token.empty() && config->username.empty() && tls.certificate_pem.empty()) {
    return mistake("kubeConfig: its user has neither a token nor a certificate");
  }
  return config;
}

}  // namespace

std::string normal_server(std::string_view server) {
  while (server.ends_with('/')) server.remove_suffix(1);
  return std::string(server);
}

Result<AddedCluster> parse_added_cluster(std::string_view body, const net::AddressList& allowed) {
  const Json json = parse_json_object(body);
  if (!json.is_object()) return mistake("the body is not a JSON object");
  auto name = parse_name(json);
  if (!name) return std::unexpected(std::move(name.error()));
  auto labels = parse_map(json, "labels", Map::labels);
  if (!labels) return std::unexpected(std::move(labels.error()));
  auto annotations = parse_map(json, "annotations", Map::annotations);
  if (!annotations) return std::unexpected(std::move(annotations.error()));
  auto text = decoded(json, "kubeConfig", kMaxKubeconfig);
  if (!text) return std::unexpected(std::move(text.error()));
  if (text->empty()) return mistake("kubeConfig is missing");
  const auto config = parse_kubeconfig(std::move(*text), *name);
  if (!config) return std::unexpected(config.error());
  if (auto checked = check_host(config->server.host, allowed); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  Json wanted{{"tlsClientConfig", tls_of(config->tls)}};
  if (!config->token.empty()) wanted["bearerToken"] = config->token.reveal();
  if (!config->username.empty()) {
    wanted["username"] = config->username;
    wanted["password"] = config->password.reveal();
  }
  return AddedCluster{.name = std::move(*name),
                      .server = normal_server(config->server.to_string()),
                      .config = Secret(to_text(wanted)),
                      .labels = std::move(*labels),
                      .annotations = std::move(*annotations)};
}

std::string cluster_secret_name(std::string_view server) {
  const auto url = http::parse_url(server);
  std::string host = url ? url->host : std::string();
  std::ranges::replace_if(host, [](char c) { return c == ':' || c == '_'; }, '-');
  return "cluster-" + host + "-" + std::to_string(fnv1a_32(server));
}

Result<std::vector<KnownCluster>> parse_known_clusters(std::string_view list) {
  std::vector<KnownCluster> known;
  const Json json = parse_json_object(list);
  const Json& items = value_at(json, {"items"});
  if (!items.is_array()) return fail(ErrorCode::protocol, "Secrets of clusters: no list");
  for (const Json& item : items) {
    const auto server = base64_decode(string_at(item, {"data", "server"}));
    const auto name = base64_decode(string_at(item, {"data", "name"}));
    const auto secret = string_at(item, {"metadata", "name"});
    if (!server || server->empty() || secret.empty()) continue;
    known.push_back({.secret = secret,
                     .name = name ? *name : std::string(),
                     .server = normal_server(*server),
                     .object = to_text(item)});
  }
  return known;
}

Result<std::optional<KnownCluster>> replaced_by(const AddedCluster& added,
                                                const std::vector<KnownCluster>& known) {
  const auto same_server = std::ranges::find(known, added.server, &KnownCluster::server);
  const auto same_name = std::ranges::find(known, added.name, &KnownCluster::name);
  if (same_server == known.end() && same_name == known.end()) return std::nullopt;
  if (same_server == known.end()) return *same_name;
  if (same_name != known.end() && same_name != same_server) {
    return fail(ErrorCode::conflict, "another cluster of this runtime is called " + added.name);
  }
  return *same_server;
}

Secret cluster_secret_object(std::string_view ns, const AddedCluster& cluster,
                             std::string_view before) {
  Json object = parse_json_object(before);
  if (!object.is_object()) {
    object = {{"metadata", {{"name", cluster_secret_name(cluster.server)}, {"namespace", ns}}},
              {"type", "Opaque"}};
  }
  object["apiVersion"] = "v1";
  object["kind"] = "Secret";
  for (const char* member : {"metadata", "data"}) {
    if (!object[member].is_object()) object[member] = Json::object();
  }
  Json& metadata = object["metadata"];
  metadata.erase("managedFields");
  const auto put = [&metadata](const char* member, std::string_view key, std::string_view value) {
    if (!metadata[member].is_object()) metadata[member] = Json::object();
    metadata[member][std::string(key)] = value;
  };
  for (const auto& [key, value] : cluster.labels) put("labels", key, value);
  for (const auto& [key, value] : cluster.annotations) put("annotations", key, value);
  put("labels", kTypeLabel, "cluster");
  put("annotations", kManagedBy, "argocd.argoproj.io");
  Json& data = object["data"];
  data["name"] = base64_encode(cluster.name);
  data["server"] = base64_encode(cluster.server);
  data["config"] = base64_encode(cluster.config.reveal());
  return Secret(to_text(object));
}

}  // namespace gitops::app_proxy
