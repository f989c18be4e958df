#include "app-proxy/clusters/cluster_report.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "app-proxy/clusters/added_cluster.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::app_proxy {
namespace {

using control_plane::ClusterState;
using Json = nlohmann::json;

constexpr std::size_t kMaxClusters = 10'000;
constexpr const char* kData = "told.json";
// Bytes of a digest: enough for accidental changes, not against deliberate collisions.
constexpr std::size_t kDigestBytes = 8;

std::int64_t count_at(const Json& object, std::initializer_list<std::string_view> path) {
  const auto& value = value_at(object, path);
  // Argo CD writes 64-bit counts as texts.
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const bool is_number =
        !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
    return is_number ? std::stoll(text) : 0;
  }
  return std::max<std::int64_t>(integer_at(object, path).value_or(0), 0);
}

ClusterState state_of(const Json& item) {
  ClusterState state{.name = string_at(item, {"name"}),
                     .server = string_at(item, {"server"}),
                     .status = string_at(item, {"info", "connectionState", "status"}),
                     .message = string_at(item, {"info", "connectionState", "message"}),
                     .attempted_at = string_at(item, {"info", "connectionState", "attemptedAt"}),
                     .server_version = string_at(item, {"info", "serverVersion"}),
                     .resources = count_at(item, {"info", "cacheInfo", "resourcesCount"}),
                     .apis = count_at(item, {"info", "cacheInfo", "apisCount"}),
                     .last_cache_sync = string_at(item, {"info", "cacheInfo", "lastCacheSyncTime"}),
                     .applications = count_at(item, {"info", "applicationsCount"})};
  if (state.status != "Failed" && state.status != "Successful") state.status = "Unknown";
  if (const auto& versions = value_at(item, {"info", "apiVersions"}); versions.is_array()) {
    for (const auto& version : versions) {
      if (version.is_string()) state.api_versions.push_back(version.get<std::string>());
    }
  }
  if (state.name.empty()) state.name = state.server;
  return state;
}

// Approximate size of a cluster as JSON.
std::size_t size_of(const ClusterState& cluster) {
  std::size_t size = 400 + cluster.name.size() + cluster.server.size() + cluster.message.size();
  for (const auto& version : cluster.api_versions) size += version.size() + 3;
  return size;
}

std::map<std::string, std::string> texts_at(const Json& object, std::string_view key) {
  std::map<std::string, std::string> texts;
  const Json& member = value_at(object, {key});
  if (!member.is_object()) return texts;
  for (const auto& [name, value] : member.items()) {
    if (value.is_string()) texts[name] = value.get<std::string>();
  }
  return texts;
}

}  // namespace

Result<std::vector<ClusterState>> parse_clusters(std::string_view list) {
  const Json json = parse_json_object(list);
  if (!json.is_object()) return fail(ErrorCode::invalid_data, "Argo CD: no list of clusters");
  std::vector<ClusterState> clusters;
  const Json& items = value_at(json, {"items"});
  if (items.is_null()) return clusters;
  if (!items.is_array() || items.size() > kMaxClusters) {
    return fail(ErrorCode::invalid_data, "Argo CD: no list of clusters");
  }
  std::set<std::string> servers;
  for (const Json& item : items) {
    auto state = state_of(item);
    if (state.server.empty() || !servers.insert(state.server).second) continue;
    clusters.push_back(std::move(state));
  }
  return clusters;
}

std::string digest_of(const ClusterState& cluster) {
  auto versions = cluster.api_versions;
  std::ranges::sort(versions);
  const Json counted =
      Json::array({cluster.name, cluster.status, cluster.message, cluster.server_version,
                   cluster.resources, cluster.apis, cluster.applications, versions});
  return hex_encode(bytes_of(sha256(to_text(counted))).substr(0, kDigestBytes));
}

DueClusters due_clusters(const std::vector<ClusterState>& now, const ReportedClusters& reported,
                         const std::map<std::string, std::string>& names) {
  DueClusters due;
  std::set<std::string_view> present;
  for (const auto& cluster : now) {
    present.insert(cluster.server);
    const auto found = reported.find(cluster.server);
    if (found == reported.end() || found->second != digest_of(cluster))
      due.changed.push_back(cluster);
  }
  for (const auto& [server, digest] : reported) {
    if (present.contains(server)) continue;
    const auto name = names.find(server);
    due.gone.push_back({.name = name == names.end() ? server : name->second,
                        .server = server,
                        .status = "Unknown",
                        .message = std::string(control_plane::kClusterRemoved),
                        .is_gone = true});
  }
  return due;
}

std::vector<ClusterState> removed_of(std::vector<ClusterState> gone,
                                     const std::vector<std::string>& servers) {
  std::erase_if(gone, [&](const ClusterState& cluster) {
    return std::ranges::find(servers, normal_server(cluster.server)) != servers.end();
  });
  return gone;
}

std::vector<std::vector<ClusterState>> in_chunks(std::vector<ClusterState> clusters,
                                                 std::size_t count, std::size_t bytes) {
  std::vector<std::vector<ClusterState>> chunks;
  std::size_t size = 0;
  for (auto& cluster : clusters) {
    const std::size_t more = size_of(cluster);
    const bool is_full =
        chunks.empty() || (count > 0 && chunks.back().size() >= count) || size + more > bytes;
    if (is_full) {
      chunks.emplace_back();
      size = 0;
    }
    size += more;
    chunks.back().push_back(std::move(cluster));
  }
  return chunks;
}

ClusterRecord read_cluster_record(std::string_view object) {
  const auto text = string_at(parse_json_object(object), {"data", kData});
  const Json json = parse_json_object(text);
  ClusterRecord record{.registration = string_at(json, {"registration"}),
                       .reported = texts_at(json, "told"),
                       .names = texts_at(json, "names")};
  return record;
}

std::string cluster_record_object(std::string_view ns, const ClusterRecord& record,
                                  std::string_view before) {
  Json object = parse_json_object(before);
  if (!object.is_object()) {
    object = {{"metadata", {{"name", kClusterRecord}, {"namespace", ns}}}};
  }
  object["apiVersion"] = "v1";
  object["kind"] = "ConfigMap";
  object["data"] = Json{{kData, to_text({{"registration", record.registration},
                                         {"told", record.reported},
                                         {"names", record.names}})}};
  return to_text(object);
}

}  // namespace gitops::app_proxy
