#include "event-reporter/app.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "common/argo/argocd_client.hpp"
#include "common/http/router.hpp"
#include "common/http/server.hpp"
#include "event-reporter/argo/argocd_token.hpp"
#include "event-reporter/argo/gather.hpp"
#include "event-reporter/foundation.hpp"
#include "event-reporter/report/reporter.hpp"
#include "event-reporter/resource_app.hpp"
#include "event-reporter/shards/app_distribution.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kLoginTimeout = std::chrono::seconds(10);

Credential argocd_password(const Config& config) {
  if (!config.argocd_password_file.empty()) return Credential::file(config.argocd_password_file);
  return Credential::fixed(config.argocd_password);
}

Credential argocd_credential(const Environment& with, k8s::Client& kubernetes,
                             Credential::Fetch log_in) {
  const auto& config = with.config;
  if (!config.argocd_password.empty() || !config.argocd_password_file.empty()) {
    return session_credential(std::move(log_in));
  }
  if (!config.argocd_token_secret.empty()) {
    return secret_credential(kubernetes,
                             {.ns = with.own_namespace, .name = config.argocd_token_secret},
                             config.argocd_token_key);
  }
  if (!config.argocd_token_file.empty()) return Credential::file(config.argocd_token_file);
  return Credential::fixed(config.argocd_token);
}

Reporter::Options reporter_options(const Environment& with) {
  const auto& config = with.config;
  Reporter::Options options;
  options.own_namespace = with.own_namespace;
  options.application_namespaces = config.application_namespaces;
  options.changes.replicas = with.shard.replicas;
  options.queue.capacity = static_cast<std::size_t>(config.queue_size);
  options.queue.workers = static_cast<std::size_t>(config.workers);
  options.queue.heartbeat = config.heartbeat;
  options.sweep = config.sweep;
  options.application.resource_workers = static_cast<std::size_t>(config.resource_workers);
  options.application.patience = static_cast<unsigned>(config.max_retries);
  options.application.resend_on_revision = config.resend_on_revision;
  return options;
}

// Owns and wires every part. Members are in order of dependence: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, Environment environment)
      : base_(context, std::move(environment)),
        argocd_http_(context.executor, base_.resolver,
                     client_options(base_.with, base_.with.config.argocd_ca_file,
                                    base_.with.config.argocd_insecure)),
        argocd_password_(argocd_password(base_.with.config)),
        argocd_token_(argocd_credential(base_.with, base_.kubernetes, [this] { return log_in(); })),
        argocd_(argocd_http_,
                {.server = argo::parse_server(base_.with.config.argocd_server).value(),
                 .root_path = base_.with.config.argocd_root_path},
                [this] { return argocd_token_.current(); }),
        gatherer_(context.executor, base_.kubernetes, argocd_, argocd_token_,
                  base_.with.own_namespace, context.metrics),
        reporter_(context.executor, base_.kubernetes, gatherer_, base_.ledger, base_.delivery,
                  reporter_options(base_.with), context.metrics),
        leases_(
            base_.kubernetes, lease_options(base_.with, "event-reporter-app"),
            {.claimed = [this](std::uint32_t shard, Term term) { reporter_.claimed(shard, term); },
             .released = [this](std::uint32_t shard) { reporter_.released(shard); },
             .busy = [this](std::uint32_t shard) { return reporter_.busy(shard); }}),
        main_port_(context.executor,
                   {.address = base_.with.config.listen_address,
                    .port = static_cast<std::uint16_t>(base_.with.config.listen_port),
                    .tls = std::nullopt},
                   [this](http::Exchange& exchange) { return routes_.serve(exchange); }) {}

  Task<Result<void>> start() {
    if (auto opened = co_await base_.open_ledger(); !opened) {
      co_return std::unexpected(opened.error());
    }
    if (auto listening = main_port_.listen(); !listening) {
      co_return std::unexpected(listening.error());
    }
    const auto& with = base_.with;
    log_.info("reporting applications", {{"kubernetes", with.cluster.server.to_string()},
                                         {"namespace", with.own_namespace},
                                         {"argocd_server", with.config.argocd_server},
                                         {"platform", with.config.platform_url},
                                         {"replicas", with.shard.replicas},
                                         {"shard", with.shard.ordinal},
                                         {"port", main_port_.port()}});
    argocd_token_.start(base_.tasks);
    base_.start_ledger();
    reporter_.start(base_.tasks);
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
    checks.push_back({"shard", [this] {
                        return leases_.holds(base_.with.shard.ordinal)
                                   ? std::string{}
                                   : std::string("the Lease of our shard is not ours yet");
                      }});
    return checks;
  }
  [[nodiscard]] std::string status() const {
    return leases_.status() + reporter_.status() + base_.delivery.status() +
           base_.ledger_status("applications");
  }
  [[nodiscard]] AdminPage journal(std::string_view query) const {
    return {.body = base_.delivery.journal().answer(query)};
  }

 private:
  Task<Result<Secret>> log_in() {
    co_return co_await argocd_.log_in(base_.with.config.argocd_username, argocd_password_.current(),
                                      deadline_after(kLoginTimeout));
  }

  [[nodiscard]] std::vector<http::Route> routes() const {
    return {
        {"GET", "/healthz", http::open_to_all(), http::answer_with([](const auto&, const auto&) {
           return http::text_response(200, "ok\n");
         })},
        {"GET", "/app-distribution", http::open_to_all(),
         http::answer_with([this](const http::Exchange& exchange, const auto&) {
           auto json = distribution(exchange.query());
           if (!json) return http::text_response(400, json.error().message + "\n");
           auto response = http::text_response(200, std::move(*json));
           response.headers.set("Content-Type", "application/json");
           return response;
         })},
    };
  }

  [[nodiscard]] Result<std::string> distribution(std::string_view query) const {
    const auto keys = reporter_.applications();
    std::vector<AppName> apps;
    apps.reserve(keys.size());
    for (const auto& key : keys) apps.push_back({.ns = key.ns, .name = key.name});
    return app_distribution(apps, base_.with.shard.replicas,
                            http::query_parameter(query, "shardings"));
  }

  Log log_{"event-reporter"};
  Foundation base_;
  http::Client argocd_http_;
  Credential argocd_password_;
  Credential argocd_token_;
  argo::ArgoCdClient argocd_;
  Gatherer gatherer_;
  Reporter reporter_;
  ShardLeases leases_;
  http::Router routes_{routes()};
  http::Server main_port_;
};

DaemonApp make_app(const DaemonContext& context, Environment environment) {
  return framed(std::make_shared<App>(context, std::move(environment)));
}

}  // namespace

DaemonSpec event_reporter() {
  const auto config = std::make_shared<Config>();
  DaemonSpec spec;
  spec.name = "event-reporter";
  spec.summary = "Reports what changes in Argo CD and its companions to the control plane.";
  spec.admin_address_env = "METRICS_LISTEN_ADDRESS";
  spec.bind = [config](ConfigReader& reader) { bind(reader, *config); };
  spec.make = [config](const DaemonContext& context) {
    auto environment = read_environment(*config, context.environment);
    if (environment) {
      return config->mode == Config::Mode::app
                 ? make_app(context, std::move(*environment))
                 : make_resource_app(context, std::move(*environment));
    }
    DaemonApp frame;
    frame.start = [error = environment.error()]() -> Task<Result<void>> {
      co_return std::unexpected(error);
    };
    frame.stop = [](Deadline) -> Task<> { co_return; };
    return frame;
  };
  return spec;
}

}  // namespace gitops::reporter
