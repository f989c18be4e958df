#include "control-plane/runtimes/cluster_view.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/control_plane/graphql.hpp"
#include "common/core/json_value.hpp"
#include "common/core/time.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxClusterText = 1'000;      // bytes of a name or a server
constexpr std::size_t kMaxClusterInfo = 64 * 1024;  // bytes of JSON
constexpr std::int64_t kMaxGraphqlInt = 2'147'483'647;

std::string_view word_of(ClusterConnection connection) {
  if (connection == ClusterConnection::successful) return "Successful";
  return connection == ClusterConnection::failed ? "Failed" : "Unknown";
}

ClusterConnection connection_of_word(std::string_view word) {
  if (word == "Successful") return ClusterConnection::successful;
  return word == "Failed" ? ClusterConnection::failed : ClusterConnection::unknown;
}

Json text_or_null(const Json& json, std::initializer_list<std::string_view> path) {
  auto text = string_at(json, path);
  return text.empty() ? Json() : Json(std::move(text));
}

Json count_at(const Json& json, std::initializer_list<std::string_view> path) {
  return std::clamp<std::int64_t>(integer_at(json, path).value_or(0), 0, kMaxGraphqlInt);
}

bool is_cluster_text(std::string_view text) {
  const auto is_shown = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7f'; };
  return !text.empty() && text.size() <= kMaxClusterText && std::ranges::all_of(text, is_shown);
}

}  // namespace

std::string cluster_json(const ClusterRow& cluster, std::string_view account_id) {
  const Json stored = parse_json_object(cluster.info);
  Json info{{"connectionState",
             {{"status", word_of(cluster.connection)},
              {"message", text_or_null(stored, {"connectionState", "message"})},
              {"attemptedAt", text_or_null(stored, {"connectionState", "attemptedAt"})}}},
            {"serverVersion", text_or_null(stored, {"serverVersion"})},
            {"cacheInfo",
             {{"resourcesCount", count_at(stored, {"cacheInfo", "resourcesCount"})},
              {"apisCount", count_at(stored, {"cacheInfo", "apisCount"})},
              {"lastCacheSyncTime", text_or_null(stored, {"cacheInfo", "lastCacheSyncTime"})}}},
            {"applicationsCount", count_at(stored, {"applicationsCount"})},
            {"apiVersions", Json::array()}};
  if (const Json& versions = value_at(stored, {"apiVersions"}); versions.is_array()) {
    for (const Json& version : versions) {
      if (version.is_string()) info["apiVersions"].push_back(version);
    }
  }
  const auto updated =
      format_rfc3339_millis(WallTime(std::chrono::milliseconds(cluster.updated_at / 1'000)));
  return to_text({{"metadata",
                   {{"group", "codefresh.io"},
                    {"version", "v1alpha1"},
                    {"kind", "Cluster"},
                    {"name", cluster.name},
                    {"runtime", cluster.runtime},
                    {"cluster", cluster.server},
                    {"account", account_id},
                    {"lastUpdated", updated}}},
                  {"server", cluster.server},
                  {"namespaces", Json::array()},
                  {"clusterResources", true},
                  {"info", std::move(info)},
                  {"inactive", false},
                  {"updatedAt", updated}});
}

std::string cluster_key(const ClusterRow& cluster) {
  return cluster.name + "\n" + cluster.runtime + "\n" + cluster.server;
}

Result<ClusterQuery> query_after(std::string_view key) {
  const auto first = key.find('\n');
  const auto second = first == std::string_view::npos ? first : key.find('\n', first + 1);
  if (second == std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "the cursor is not one of this list");
  }
  ClusterQuery query;
  query.after_name = key.substr(0, first);
  query.after_runtime = key.substr(first + 1, second - first - 1);
  query.after_server = key.substr(second + 1);
  return query;
}

Result<ClusterReport> read_cluster_report(std::string_view clusters, std::string_view runtime) {
  ClusterReport report;
  const Json list = Json::parse(clusters, nullptr, false);
  if (!list.is_array()) return report;
  for (const Json& item : list) {
    if (!item.is_object()) continue;  // the list may hold nulls
    ClusterRow cluster{
        .runtime = string_at(item, {"runtime"}),
        .server = string_at(item, {"server"}),
        .name = string_at(item, {"name"}),
        .info = to_text(value_at(item, {"info"})),
        .connection = connection_of_word(string_at(item, {"info", "connectionState", "status"}))};
    if (cluster.runtime != runtime) {
      return fail(ErrorCode::invalid_argument, "the cluster " + cluster.name +
                                                   " is said to belong to runtime " +
                                                   cluster.runtime + ", not to runtime " +
                                                   std::string(runtime) + " of the token");
    }
    if (!is_cluster_text(cluster.name) || !is_cluster_text(cluster.server) ||
        cluster.info.size() > kMaxClusterInfo) {
      return fail(ErrorCode::invalid_argument,
                  "a cluster has a name and a server of at most 1,000 bytes without control "
                  "characters, and an info of at most 64 KiB");
    }
    const bool is_removed =
        cluster.connection == ClusterConnection::unknown &&
        string_at(item, {"info", "connectionState", "message"}) == control_plane::kClusterRemoved;
    if (is_removed) {
      report.removed.push_back(std::move(cluster.server));
    } else {
      report.present.push_back(std::move(cluster));
    }
  }
  return report;
}

}  // namespace gitops::control_plane_server
