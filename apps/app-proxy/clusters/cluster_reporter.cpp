#include "app-proxy/clusters/cluster_reporter.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app-proxy/clusters/managed_clusters.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "k8s-client/cluster_secret.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {

using control_plane::ClusterState;

ClusterReporter::ClusterReporter(k8s::Client& cluster, argo::ArgoCdClient& argocd,
                                 control_plane::GraphqlClient& control_plane,
                                 Leadership& leadership, RuntimeIdentity& runtime,
                                 Event& clusters_changed, Options options)
    : cluster_(cluster),
      argocd_(argocd),
      control_plane_(control_plane),
      leadership_(leadership),
      runtime_(runtime),
      clusters_changed_(clusters_changed),
      options_(std::move(options)) {}

void ClusterReporter::start(TaskGroup& group) {
  group.spawn("report of clusters", [this]() -> Task<> {
    while (true) {
      const auto done = co_await round();
      const std::string error = done ? std::string() : done.error().message;
      if (error != last_error_ && !error.empty()) {
        log_.warning("clusters could not be reported", {{"reason", error}});
      }
      last_error_ = error;
      (void)co_await clusters_changed_.wait(deadline_after(options_.period));
    }
  });
}

Task<Result<void>> ClusterReporter::round() {
  if (!leadership_.leads() || registration().empty()) {
    unreachable_ =
        fail(ErrorCode::unavailable,
             leadership_.leads() ? "the runtime is not registered yet" : "another replica leads");
    co_return Result<void>();
  }
  const Deadline deadline = deadline_after(options_.timeout);
  const auto list = co_await argocd_.clusters(deadline);
  const auto now = list ? parse_clusters(*list)
                        : Result<std::vector<ClusterState>>(std::unexpected(list.error()));
  unreachable_ = now;
  if (!now) co_return std::unexpected(now.error());
  std::erase_if(*unreachable_,
                [](const ClusterState& cluster) { return cluster.status != "Failed"; });
  auto object = co_await cluster_.get(
      k8s::resources::kConfigMaps, {options_.own_namespace, std::string(kClusterRecord)}, deadline);
  if (!object && object.error().code != ErrorCode::not_found) {
    co_return fail("ConfigMap of reported clusters", std::move(object.error()));
  }
  std::string stored = object ? std::move(*object) : std::string();
  auto record = read_cluster_record(stored);
  if (record.registration != registration()) record = {.registration = registration()};
  if (now->empty() && !record.reported.empty()) {
    // argocd-server's list leaves out clusters that its account may not see.
    co_return fail(ErrorCode::forbidden,
                   "Argo CD shows no cluster; its account needs the right to get clusters");
  }
  auto due = due_clusters(*now, record.reported, record.names);
  auto all = std::move(due.changed);
  auto removed = co_await removed_clusters(std::move(due.gone), deadline);
  if (removed) std::ranges::move(*removed, std::back_inserter(all));
  for (auto& chunk : in_chunks(std::move(all), options_.chunk_count, options_.chunk_bytes)) {
    // After a suspension of the process another replica may lead and have reported this already.
    if (!leadership_.leads()) co_return Result<void>();
    auto reported = co_await report_chunk(std::move(chunk), record, stored, deadline);
    if (!reported) co_return reported;
  }
  if (!removed) co_return std::unexpected(std::move(removed.error()));
  co_return Result<void>();
}

// Returns an identifier of the registration. A new token is a new registration, to which no cluster
// was reported.
std::string ClusterReporter::registration() const {
  const auto token = runtime_.token();
  if (token.empty()) return {};
  constexpr std::size_t kBytes = 8;
  return hex_encode(bytes_of(sha256("clusters:" + std::string(token.reveal()))).substr(0, kBytes));
}

// Returns the clusters that were removed. The runtime's account at Argo CD may have lost
// permissions, so the Secrets decide.
Task<Result<std::vector<ClusterState>>> ClusterReporter::removed_clusters(
    std::vector<ClusterState> gone, Deadline deadline) {
  // The in-cluster one has no Secret, and is never removed.
  std::erase_if(gone, [this](const ClusterState& cluster) {
    return k8s::is_own_cluster(cluster.server, cluster_.config().server);
  });
  if (gone.empty()) co_return gone;
  const auto known = co_await known_clusters(cluster_, options_.own_namespace, deadline);
  if (!known) co_return std::unexpected(known.error());
  std::vector<std::string> servers;
  for (const auto& cluster : *known) servers.push_back(cluster.server);
  co_return removed_of(std::move(gone), servers);
}

StatusEntry ClusterReporter::status() const {
  auto entry = status_entry("report of clusters", last_error_);
  if (last_error_ == kNotCheckedYet) entry.state = StatusState::pending;
  return entry;
}

// Reports a chunk. The record is first marked as about to be reported, so that the states are
// reported again if the second write fails. In that case the control plane may have them, and the
// cluster may have returned to its earlier state.
Task<Result<void>> ClusterReporter::report_chunk(std::vector<ClusterState> chunk,
                                                 ClusterRecord& record, std::string& stored,
                                                 Deadline deadline) {
  const ClusterRecord before = record;
  for (const auto& cluster : chunk) {
    record.reported[cluster.server] = std::string(kAboutToBeReported);
    record.names[cluster.server] = cluster.name;
  }
  if (record != before) {
    if (auto noted = co_await store(record, stored, deadline); !noted) co_return noted;
    // After a suspension of the process another replica may lead and have reported this already.
    if (!leadership_.leads()) co_return Result<void>();
  }
  auto reported = co_await control_plane_.report_clusters(options_.runtime, chunk, deadline);
  if (!reported) co_return reported;
  for (const auto& cluster : chunk) {
    if (cluster.is_gone) {
      record.reported.erase(cluster.server);
      record.names.erase(cluster.server);
    } else {
      record.reported[cluster.server] = digest_of(cluster);
    }
  }
  co_return co_await store(record, stored, deadline);
}

// Stores the record. A conflict means that another replica has written since and reports the rest.
Task<Result<void>> ClusterReporter::store(const ClusterRecord& record, std::string& stored,
                                          Deadline deadline) {
  const auto& ns = options_.own_namespace;
  auto object = cluster_record_object(ns, record, stored);
  auto written =
      stored.empty()
          ? co_await cluster_.create(k8s::resources::kConfigMaps, ns, std::move(object), deadline)
          : co_await cluster_.update(k8s::resources::kConfigMaps, {ns, std::string(kClusterRecord)},
                                     std::move(object), deadline);
  if (!written) co_return fail("ConfigMap of reported clusters", std::move(written.error()));
  stored = std::move(*written);
  co_return Result<void>();
}

}  // namespace gitops::app_proxy
