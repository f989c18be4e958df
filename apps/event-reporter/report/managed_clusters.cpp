#include "event-reporter/report/managed_clusters.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <prometheus/gauge.h>

#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

// Time after which the objects of a removed cluster are forgotten. A Secret that is replaced is absent
// for a moment, and deletions of the cluster's objects may be due.
constexpr auto kReplaced = std::chrono::seconds(5);

// Returns the digest of the Secret's data, which decides whether the watch of the cluster is
// restarted.
Digest data_digest(std::string_view secret) {
  Hasher hasher;
  for_each_member(secret, [&hasher](std::string_view key, std::string_view value) {
    if (key == "data") hasher.add(value);
    return true;
  });
  return hasher.finish();
}

}  // namespace

ManagedClusters::ManagedClusters(const Executor& executor, k8s::Client& kubernetes,
                                 const std::string& ns, const std::vector<std::string>& names,
                                 ResourceReporter& reporter, MakeClient make_client,
                                 Metrics& metrics, k8s::Reflector::Options reflector)
    : kubernetes_(kubernetes),
      reporter_(reporter),
      make_client_(std::move(make_client)),
      skipped_(metrics.gauge("gitops_event_reporter_skipped_clusters",
                             "Managed clusters with an unusable Secret")) {
  const auto watch = [&](const std::string& field_selector, const std::string& resource) {
    informers_.push_back(std::make_unique<k8s::Informer>(
        executor, kubernetes,
        k8s::InformerOptions{.resource = k8s::resources::kSecrets,
                             .ns = ns,
                             .label_selector = k8s::kClusterSecretSelector,
                             .field_selector = field_selector,
                             .fields = k8s::FieldSet({}),
                             .metric_labels = {{"cluster", std::string(kOwnCluster) + resource}},
                             .reflector = reflector},
        metrics, "event_reporter"));
    changes_.push_back(
        informers_.back()->subscribe([this](const k8s::Change& change) { on_change(change); }));
  };
  if (names.empty()) watch("", "");
  // The API server compares metadata.name in the selector with the names in the permissions.
  for (const auto& name : names) watch("metadata.name=" + name, "/" + name);
}

void ManagedClusters::start(TaskGroup& group) {
  group_ = &group;
  for (const auto& informer : informers_) informer->start(group);
  group.spawn("clusters", [this] { return forget_missing(); });
}

void ManagedClusters::on_change(const k8s::Change& change) {
  const std::string name(change.now->name());
  if (change.type == k8s::Change::Type::deleted) {
    const auto before = servers();
    if (entries_.erase(name) == 0) return;
    apply();
    const auto after = servers();
    for (const auto& server : before) {
      if (!after.contains(server)) forget_unless_it_returns(server);
    }
    return;
  }
  const auto digest = data_digest(change.text);
  auto& entry = entries_[name];
  if (entry.digest == digest) return;
  const auto before = entry.secret.server;
  entry = {.digest = digest, .secret = k8s::parse_cluster_secret(change.text)};
  if (!entry.secret.config) {
    log_.warning("a managed cluster is skipped", {{"name", name},
                                                  {"cluster", entry.secret.name},
                                                  {"server", entry.secret.server},
                                                  {"reason", entry.secret.config.error().message}});
  }
  apply();
  // The Secret names another cluster now.
  if (!before.empty() && !entry.secret.server.empty() && !servers().contains(before)) {
    forget_unless_it_returns(before);
  }
}

void ManagedClusters::forget_unless_it_returns(const std::string& server) {
  group_->spawn("removed cluster", [this, server] { return forget_later(server); });
}

Task<> ManagedClusters::forget_later(std::string server) {
  co_await sleep_for(kReplaced);
  if (!servers().contains(server)) reporter_.forget_cluster(server);
}

// Watches exactly the clusters with a usable Secret.
void ManagedClusters::apply() {
  std::map<std::string, const Entry*> wanted;
  std::size_t skipped = 0;
  for (const auto& [name, entry] : entries_) {
    if (!entry.secret.config) {
      ++skipped;
    } else if (!k8s::is_own_cluster(entry.secret.server, kubernetes_.config().server)) {
      wanted.try_emplace(entry.secret.server, &entry);
    }
  }
  skipped_.Set(static_cast<double>(skipped));
  std::erase_if(watched_, [&](const auto& watched) {
    const auto found = wanted.find(watched.first);
    if (found != wanted.end() && found->second->digest == watched.second) return false;
    reporter_.unwatch_cluster(watched.first);
    return true;
  });
  for (const auto& [server, entry] : wanted) {
    if (!watched_.try_emplace(server, entry->digest).second) continue;
    reporter_.watch_cluster({.server = server,
                             .name = entry->secret.name,
                             .client = make_client_(*entry->secret.config),
                             .namespaces = entry->secret.namespaces});
  }
}

std::set<std::string> ManagedClusters::servers() const {
  std::set<std::string> out;
  for (const auto& [name, entry] : entries_) {
    if (!entry.secret.server.empty()) out.insert(entry.secret.server);
  }
  return out;
}

// Forgets the clusters whose Secrets were removed before this process started, unless a Secret is
// unreadable, which may be that of any cluster.
Task<> ManagedClusters::forget_missing() {
  for (const auto& informer : informers_) co_await informer->wait_synced(kNever);
  const bool all_known = std::ranges::none_of(
      entries_, [](const auto& entry) { return entry.second.secret.server.empty(); });
  if (all_known) reporter_.forget_clusters_but(servers());
}

ReadyCheck ManagedClusters::ready_check() const {
  return {"clusters", [this] {
            for (const auto& informer : informers_) {
              if (!informer->last_error().empty()) return informer->last_error();
              if (!informer->has_synced()) return std::string("not listed yet");
            }
            return std::string{};
          }};
}

StatusEntry ManagedClusters::status() const {
  StatusEntry clusters{.name = "managed clusters"};
  clusters.add_count_of("secrets", watched_.size(), entries_.size(), "Secrets");
  for (const auto& [name, entry] : entries_) {
    if (entry.secret.config) continue;
    clusters.state = StatusState::degraded;
    clusters.add_detail({.name = "skipped " + name + " (" + entry.secret.name + ")",
                         .state = StatusState::failed,
                         .message = entry.secret.config.error().message});
  }
  return clusters;
}

}  // namespace gitops::reporter
