#include "event-reporter/resource_mode.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace gitops::reporter {
namespace {

ResourceReporter::Options reporter_options(const Environment& environment, Tracer& tracer) {
  const auto& config = environment.config;
  ResourceReporter::Options options;
  options.own_namespace = environment.own_namespace;
  for (const auto& kind : resource_kinds()) {
    if (config.kinds.empty() || std::ranges::find(config.kinds, kind.name) != config.kinds.end()) {
      options.kinds.push_back(&kind);
    }
  }
  options.runtime_namespaces = config.workflow_namespaces;
  options.only_own_namespace = config.namespaced;
  options.any_owner = config.all_replicasets;
  options.changes.replicas = environment.shard.replicas;
  options.reconcile = config.reconcile;
  options.queue.object = "resource";
  options.queue.heartbeat = config.heartbeat;
  options.queue.tracer = &tracer;
  options.queue.capacity = static_cast<std::size_t>(config.queue_size);
  options.queue.workers = static_cast<std::size_t>(config.workers);
  return options;
}

}  // namespace

ResourceMode::ResourceMode(const DaemonContext& context, SharedParts& shared)
    : reporter_(context.executor, shared.kubernetes, shared.ledger, shared.delivery,
                reporter_options(shared.environment, context.tracer), context.metrics) {
  if (!shared.environment.config.managed_clusters) return;
  clusters_.emplace(
      context.executor, shared.kubernetes, shared.environment.own_namespace,
      shared.environment.config.cluster_secrets, reporter_,
      [&shared, executor = context.executor](k8s::ClusterConfig cluster) {
        return std::make_shared<k8s::Client>(executor, shared.resolver, std::move(cluster),
                                             shared.environment.proxy,
                                             user_agent(shared.environment.config));
      },
      context.metrics);
}

void ResourceMode::start(TaskGroup& group) {
  reporter_.start(group);
  if (clusters_) {
    clusters_->start(group);
  } else {
    reporter_.forget_clusters_but({});
  }
}

std::vector<ReadyCheck> ResourceMode::ready_checks() {
  auto checks = reporter_.ready_checks();
  if (clusters_) checks.push_back(clusters_->ready_check());
  return checks;
}

StatusReport ResourceMode::status() const {
  auto report = reporter_.status();
  if (clusters_) report.push_back(clusters_->status());
  return report;
}

}  // namespace gitops::reporter
