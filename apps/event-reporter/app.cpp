#include "event-reporter/app.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/argo/argocd_client.hpp"
#include "common/http/client.hpp"
#include "common/http/proxy_settings.hpp"
#include "common/http/resolve.hpp"
#include "common/http/server.hpp"
#include "event-reporter/app_distribution.hpp"
#include "event-reporter/config.hpp"
#include "event-reporter/credential.hpp"
#include "event-reporter/delivery.hpp"
#include "event-reporter/gather.hpp"
#include "event-reporter/ledger.hpp"
#include "event-reporter/reporter.hpp"
#include "event-reporter/shard_leases.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/config.hpp"

namespace gitops::reporter {
namespace {

// What was read from outside before the parts could be made.
struct Environment {
  Config config;
  k8s::ClusterConfig cluster;
  http::ProxySettings proxy;
  std::string own_namespace;
  Shard shard;
};

Result<Environment> read_environment(const Config& config,
                                     const std::map<std::string, std::string>& environment) {
  auto cluster = k8s::load_cluster_config(
      config.kubeconfig, config.context, environment,
      config.kubeconfig_exec ? k8s::ExecPolicy::allow : k8s::ExecPolicy::refuse);
  if (!cluster) return std::unexpected(cluster.error());
  auto proxy = http::proxy_settings(environment);
  if (!proxy) return std::unexpected(proxy.error());
  const auto shard = own_shard(config.replicas, config.shard, host_name());
  if (!shard) return std::unexpected(shard.error());
  auto own_namespace =
      config.own_namespace.empty() ? cluster->default_namespace : config.own_namespace;
  return Environment{.config = config,
                     .cluster = std::move(*cluster),
                     .proxy = std::move(*proxy),
                     .own_namespace = std::move(own_namespace),
                     .shard = *shard};
}

http::ClientOptions client_options(const Environment& with, const std::string& ca_file,
                                   bool insecure) {
  http::ClientOptions options;
  options.tls.ca_file = ca_file;
  options.tls.insecure_skip_verify = insecure;
  options.proxy = with.proxy;
  options.user_agent = "gitops-event-reporter";
  if (!with.config.version.empty()) options.user_agent += "/" + with.config.version;
  return options;
}

Delivery::Options delivery_options(const Config& config) {
  Delivery::Options options;
  options.max_attempts = static_cast<unsigned>(config.max_retries);
  options.breaker.max_permits = static_cast<std::size_t>(
      std::min<std::int64_t>(64, config.workers * config.resource_workers));
  return options;
}

http::ClientOptions platform_options(const Environment& with) {
  auto options = client_options(with, with.config.platform_ca_file, with.config.platform_insecure);
  options.max_idle_per_host = delivery_options(with.config).breaker.max_permits;
  return options;
}

Credential argocd_credential(const Environment& with, k8s::Client& kubernetes) {
  const auto& config = with.config;
  if (!config.argocd_token_secret.empty()) {
    return Credential::secret(kubernetes,
                              {.ns = with.own_namespace, .name = config.argocd_token_secret},
                              config.argocd_token_key);
  }
  if (!config.argocd_token_file.empty()) return Credential::file(config.argocd_token_file);
  return Credential::fixed(config.argocd_token);
}

Credential platform_credential(const Environment& with) {
  const auto& config = with.config;
  if (!config.platform_token_file.empty()) return Credential::file(config.platform_token_file);
  return Credential::fixed(config.platform_token);
}

Reporter::Options reporter_options(const Environment& with) {
  const auto& config = with.config;
  Reporter::Options options;
  options.own_namespace = with.own_namespace;
  options.application_namespaces = config.application_namespaces;
  options.changes.replicas = with.shard.replicas;
  options.queue.capacity = static_cast<std::size_t>(config.queue_size);
  options.queue.workers = static_cast<std::size_t>(config.workers);
  options.heartbeat = config.heartbeat;
  options.sweep = config.sweep;
  options.application.resource_workers = static_cast<std::size_t>(config.resource_workers);
  options.application.patience = static_cast<unsigned>(config.max_retries);
  options.application.resend_on_revision = config.resend_on_revision;
  return options;
}

ShardLeases::Options lease_options(const Environment& with) {
  ShardLeases::Options options;
  options.ns = with.own_namespace;
  options.identity = host_name();
  options.own = with.shard;
  return options;
}

// Owns and wires every part. Members are in order of dependence: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, Environment with)
      : with_(std::move(with)),
        resolver_(context.executor, context.pool),
        kubernetes_(context.executor, resolver_, with_.cluster, with_.proxy,
                    client_options(with_, {}, false).user_agent),
        argocd_http_(
            context.executor, resolver_,
            client_options(with_, with_.config.argocd_ca_file, with_.config.argocd_insecure)),
        platform_http_(context.executor, resolver_, platform_options(with_)),
        argocd_token_(argocd_credential(with_, kubernetes_)),
        platform_token_(platform_credential(with_)),
        argocd_(argocd_http_,
                {.server = argo::parse_server(with_.config.argocd_server).value(),
                 .root_path = with_.config.argocd_root_path},
                [this] { return argocd_token_.current(); }),
        platform_(platform_http_, http::parse_url(with_.config.platform_url).value(),
                  [this] { return platform_token_.current(); }),
        gatherer_(context.executor, kubernetes_, argocd_, argocd_token_, with_.own_namespace,
                  context.metrics),
        ledger_(context.executor, {.path = with_.config.ledger_file}, context.metrics),
        delivery_(context.executor, platform_, platform_token_, delivery_options(with_.config),
                  context.metrics),
        reporter_(context.executor, kubernetes_, gatherer_, ledger_, delivery_,
                  reporter_options(with_), context.metrics),
        leases_(
            kubernetes_, lease_options(with_),
            {.claimed = [this](std::uint32_t shard, Term term) { reporter_.claimed(shard, term); },
             .released = [this](std::uint32_t shard) { reporter_.released(shard); },
             .busy = [this](std::uint32_t shard) { return reporter_.busy(shard); }}),
        main_port_(context.executor,
                   {.address = with_.config.listen_address,
                    .port = static_cast<std::uint16_t>(with_.config.listen_port),
                    .tls = std::nullopt},
                   [this](http::Exchange& exchange) { return answer(exchange); }),
        tasks_(context.executor,
               [fail = context.fail](const std::string& task, const std::string& what) {
                 fail(task + ": " + what);
               }) {}

  Task<Result<void>> start() {
    if (auto opened = co_await ledger_.open(); !opened) {
      co_return std::unexpected(opened.error());
    }
    if (auto listening = main_port_.listen(); !listening) {
      co_return std::unexpected(listening.error());
    }
    log_.info("reporting applications", {{"kubernetes", with_.cluster.server.to_string()},
                                         {"namespace", with_.own_namespace},
                                         {"argocd_server", with_.config.argocd_server},
                                         {"platform", with_.config.platform_url},
                                         {"replicas", with_.shard.replicas},
                                         {"shard", with_.shard.ordinal},
                                         {"port", main_port_.port()}});
    argocd_token_.start(tasks_);
    ledger_.start(tasks_);
    reporter_.start(tasks_);
    leases_.start(tasks_);
    co_return Result<void>();
  }

  // What is under way may end and is written down; what waits is found again by the next start.
  Task<> stop(Deadline deadline) {
    main_port_.drain();
    reporter_.stop();
    while (reporter_.in_work() > 0 && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(20));
    }
    std::ignore = co_await ledger_.flush(deadline);
    tasks_.cancel();
    co_await tasks_.join();
    co_await main_port_.stop(deadline);
  }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks() {
    auto checks = reporter_.ready_checks();
    checks.push_back({"shard", [this] {
                        return leases_.holds(with_.shard.ordinal)
                                   ? std::string{}
                                   : std::string("the Lease of our shard is not ours yet");
                      }});
    return checks;
  }
  [[nodiscard]] std::string status() const {
    auto out = leases_.status() + reporter_.status() + delivery_.status();
    out += "ledger: " + std::to_string(ledger_.known().size()) + " applications" +
           (with_.config.ledger_file.empty() ? ", in memory only" : "") + "\n";
    if (!ledger_.trouble().empty()) out += "ledger trouble: " + ledger_.trouble() + "\n";
    return out;
  }
  [[nodiscard]] AdminPage journal(std::string_view query) const {
    return {.body = delivery_.journal().answer(query)};
  }

 private:
  Task<> answer(http::Exchange& exchange) const {
    http::Response response;
    response.headers.set("Content-Type", "text/plain");
    if (exchange.path() != "/healthz" && exchange.path() != "/app-distribution") {
      response.status = 404;
      response.body = "not found\n";
    } else if (exchange.request().method != "GET" && exchange.request().method != "HEAD") {
      response.status = 405;
      response.headers.set("Allow", "GET, HEAD");
    } else if (exchange.path() == "/healthz") {
      response.body = "ok\n";
    } else if (auto json = distribution(exchange.query())) {
      response.headers.set("Content-Type", "application/json");
      response.body = std::move(*json);
    } else {
      response.status = 400;
      response.body = json.error().message + "\n";
    }
    std::ignore = co_await exchange.reply(std::move(response));
  }

  [[nodiscard]] Result<std::string> distribution(std::string_view query) const {
    const auto keys = reporter_.applications();
    std::vector<AppName> apps;
    apps.reserve(keys.size());
    for (const auto& key : keys) apps.push_back({.ns = key.ns, .name = key.name});
    return app_distribution(apps, with_.shard.replicas, http::query_parameter(query, "shardings"));
  }

  Environment with_;
  Log log_{"event-reporter"};
  http::Resolver resolver_;
  k8s::Client kubernetes_;
  http::Client argocd_http_;
  http::Client platform_http_;
  Credential argocd_token_;
  Credential platform_token_;
  argo::ArgoCdClient argocd_;
  platform::Client platform_;
  Gatherer gatherer_;
  Ledger ledger_;
  Delivery delivery_;
  Reporter reporter_;
  ShardLeases leases_;
  http::Server main_port_;
  TaskGroup tasks_;
};

}  // namespace

DaemonSpec event_reporter() {
  const auto config = std::make_shared<Config>();
  DaemonSpec spec;
  spec.name = "event-reporter";
  spec.summary = "Reports the changes of Argo CD applications to the control plane.";
  spec.admin_address_env = "METRICS_LISTEN_ADDRESS";
  spec.bind = [config](ConfigReader& reader) { bind(reader, *config); };
  spec.make = [config](const DaemonContext& context) {
    auto environment = read_environment(*config, context.environment);
    DaemonApp frame;
    if (!environment) {
      frame.start = [error = environment.error()]() -> Task<Result<void>> {
        co_return std::unexpected(error);
      };
      frame.stop = [](Deadline) -> Task<> { co_return; };
      return frame;
    }
    const auto app = std::make_shared<App>(context, std::move(*environment));
    frame.start = [app] { return app->start(); };
    frame.stop = [app](Deadline deadline) { return app->stop(deadline); };
    frame.ready_checks = app->ready_checks();
    frame.status = [app] { return app->status(); };
    frame.pages["/journal"] = [app](std::string_view query) { return app->journal(query); };
    return frame;
  };
  return spec;
}

}  // namespace gitops::reporter
