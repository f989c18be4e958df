#include "event-reporter/resource_app.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/http/router.hpp"
#include "common/http/server.hpp"
#include "event-reporter/report/managed_clusters.hpp"
#include "event-reporter/report/resource_reporter.hpp"

namespace gitops::reporter {
namespace {

ResourceReporter::Options reporter_options(const Environment& with) {
  const auto& config = with.config;
  ResourceReporter::Options options;
  options.own_namespace = with.own_namespace;
  for (const auto& kind : resource_kinds()) {
    if (config.kinds.empty() || std::ranges::find(config.kinds, kind.name) != config.kinds.end()) {
      options.kinds.push_back(&kind);
    }
  }
  options.runtime_namespaces = config.workflow_namespaces;
  options.only_own_namespace = config.namespaced;
  options.any_owner = config.all_replicasets;
  options.changes.replicas = with.shard.replicas;
  options.queue.object = "resource";
  options.queue.heartbeat = config.heartbeat;
  options.queue.capacity = static_cast<std::size_t>(config.queue_size);
  options.queue.workers = static_cast<std::size_t>(config.workers);
  return options;
}

// Owns and wires every part. Members are in order of dependence: later ones use earlier ones.
class ResourceApp {
 public:
  ResourceApp(const DaemonContext& context, Environment environment)
      : base_(context, std::move(environment)),
        reporter_(context.executor, base_.kubernetes, base_.ledger, base_.delivery,
                  reporter_options(base_.with), context.metrics),
        leases_(
            base_.kubernetes, lease_options(base_.with, "event-reporter-resource"),
            {.claimed = [this](std::uint32_t shard, Term term) { reporter_.claimed(shard, term); },
             .released = [this](std::uint32_t shard) { reporter_.released(shard); },
             .busy = [this](std::uint32_t shard) { return reporter_.busy(shard); }}),
        main_port_(context.executor,
                   {.address = base_.with.config.listen_address,
                    .port = static_cast<std::uint16_t>(base_.with.config.listen_port),
                    .tls = std::nullopt},
                   [this](http::Exchange& exchange) { return routes_.serve(exchange); }) {
    if (!base_.with.config.managed_clusters) return;
    clusters_.emplace(
        context.executor, base_.kubernetes, base_.with.own_namespace, reporter_,
        [this, executor = context.executor](k8s::ClusterConfig config) {
          return std::make_shared<k8s::Client>(executor, base_.resolver, std::move(config),
                                               base_.with.proxy,
                                               client_options(base_.with, {}, false).user_agent);
        },
        context.metrics);
  }

  Task<Result<void>> start() {
    if (auto opened = co_await base_.open_ledger(); !opened) {
      co_return std::unexpected(opened.error());
    }
    if (auto listening = main_port_.listen(); !listening) {
      co_return std::unexpected(listening.error());
    }
    const auto& with = base_.with;
    log_.info("reporting resources", {{"kubernetes", with.cluster.server.to_string()},
                                      {"namespace", with.own_namespace},
                                      {"managed_clusters", with.config.managed_clusters},
                                      {"platform", with.config.platform_url},
                                      {"replicas", with.shard.replicas},
                                      {"shard", with.shard.ordinal},
                                      {"port", main_port_.port()}});
    base_.start_ledger();
    reporter_.start(base_.tasks);
    if (clusters_) {
      clusters_->start(base_.tasks);
    } else {
      reporter_.forget_clusters_but({});
    }
    leases_.start(base_.tasks);
    co_return Result<void>();
  }

  Task<> stop(Deadline deadline) {
    main_port_.drain();
    reporter_.stop();
    co_await base_.finish(deadline);
    co_await main_port_.stop(deadline);
  }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks() {
    auto checks = reporter_.ready_checks();
    if (clusters_) checks.push_back(clusters_->ready_check());
    checks.push_back({"shard", [this] {
                        return leases_.holds(base_.with.shard.ordinal)
                                   ? std::string{}
                                   : std::string("the Lease of our shard is not ours yet");
                      }});
    return checks;
  }
  [[nodiscard]] std::string status() const {
    auto out = leases_.status() + reporter_.status();
    if (clusters_) out += clusters_->status();
    return out + base_.delivery.status() + base_.ledger_status("resources");
  }
  [[nodiscard]] AdminPage journal(std::string_view query) const {
    return {.body = base_.delivery.journal().answer(query)};
  }

 private:
  static std::vector<http::Route> routes() {
    return {
        {"GET", "/healthz", http::open_to_all(), http::answer_with([](const auto&, const auto&) {
           return http::text_response(200, "ok\n");
         })}};
  }

  Log log_{"event-reporter"};
  Foundation base_;
  ResourceReporter reporter_;
  std::optional<ManagedClusters> clusters_;
  ShardLeases leases_;
  http::Router routes_{routes()};
  http::Server main_port_;
};

}  // namespace

DaemonApp make_resource_app(const DaemonContext& context, Environment environment) {
  return framed(std::make_shared<ResourceApp>(context, std::move(environment)));
}

}  // namespace gitops::reporter
