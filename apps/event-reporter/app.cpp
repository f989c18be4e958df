#include "event-reporter/app.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "common/core/process.hpp"
#include "common/http/router.hpp"
#include "common/http/server.hpp"
#include "event-reporter/application_mode.hpp"
#include "event-reporter/report/refused_events.hpp"
#include "event-reporter/report/requested_reports.hpp"
#include "event-reporter/report/resync.hpp"
#include "event-reporter/resource_mode.hpp"
#include "event-reporter/shards/shard_leases.hpp"
#include "event-reporter/shared_parts.hpp"

namespace gitops::reporter {
namespace {

ShardLeases::Options lease_options(const Environment& environment, const char* name) {
  ShardLeases::Options options;
  options.ns = environment.own_namespace;
  options.name = name;
  options.identity = host_name();
  options.own = environment.shard;
  return options;
}

http::ServerOptions main_port_options(const Config& config) {
  return {.address = config.listen_address,
          .port = static_cast<std::uint16_t>(config.listen_port),
          .tls = std::nullopt};
}

// Owns and wires every part: the shared ones and those of one mode (ApplicationMode, ResourceMode).
// Members are in order of dependence: later ones use earlier ones.
template <class Mode>
class App {
 public:
  App(const DaemonContext& context, Environment environment)
      : shared_(context, std::move(environment)),
        mode_(context, shared_),
        leases_(shared_.kubernetes, lease_options(shared_.environment, Mode::kLeases), changes()),
        resync_(changes(), shared_.ledger, shared_.delivery, shared_.platform,
                {.is_of_applications = Mode::kIsOfApplications,
                 .replicas = shared_.environment.shard.replicas,
                 .listed = [this] { return mode_.reporter().listed(); }},
                context.metrics),
        requested_(context.executor, changes(), context.metrics),
        router_(routes()),
        main_port_(context.executor, main_port_options(shared_.environment.config),
                   [this](http::Exchange& exchange) { return router_.serve(exchange); }) {
    changes().limit_sequences([this](std::uint32_t shard) { return leases_.latest(shard); });
    shared_.delivery.on_asked([this](const auto& requests) { requested_.take(requests); });
  }

  Task<Result<void>> start() {
    if (auto opened = co_await shared_.open_ledger(); !opened) {
      co_return std::unexpected(opened.error());
    }
    if (auto listening = main_port_.listen(); !listening) {
      co_return std::unexpected(listening.error());
    }
    const auto& environment = shared_.environment;
    log_.info("reporting " + std::string(Mode::kReported),
              {{"kubernetes", environment.cluster.server.to_string()},
               {"namespace", environment.own_namespace},
               Mode::log_field(environment.config),
               {"platform", environment.config.platform_url},
               {"replicas", environment.shard.replicas},
               {"shard", environment.shard.ordinal},
               {"port", main_port_.port()}});
    shared_.start_ledger();
    mode_.start(shared_.tasks);
    leases_.start(shared_.tasks);
    shared_.tasks.spawn("resync", [this] { return resync_.run(); });
    shared_.tasks.spawn("position", [this] { return resync_.ask_while_silent(); });
    shared_.tasks.spawn("requested reports", [this] { return requested_.run(); });
    co_return Result<void>();
  }

  Task<> stop(Deadline deadline) {
    main_port_.drain();
    mode_.reporter().stop();
    co_await changes().flush_inventory(deadline);
    co_await shared_.finish(deadline);
    co_await main_port_.stop(deadline);
  }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks() {
    auto checks = mode_.ready_checks();
    checks.push_back({"ledger", [this] { return shared_.ledger.holds_events(); }});
    checks.push_back({"shard", [this] { return leases_.last_error(); }});
    return checks;
  }
  [[nodiscard]] StatusReport status() const {
    return joined({leases_.status(), mode_.status(), shared_.delivery.status(), resync_.status(),
                   refused_status(shared_.ledger), shared_.ledger_status(Mode::kReported)});
  }
  [[nodiscard]] AdminPage journal(std::string_view query) const {
    return {.body = shared_.delivery.journal().answer(query, [this](std::string_view object) {
      return refused_json(shared_.ledger, object);
    })};
  }
  AdminPage retry_refused() {
    return {.body = "{\"events\":" + std::to_string(changes().retry_refused()) + "}\n"};
  }

 private:
  ChangeTracker& changes() { return mode_.reporter().changes(); }

  [[nodiscard]] std::vector<http::Route> routes() const {
    auto routes = mode_.routes();
    routes.push_back(
        {"GET", "/healthz", http::open_to_all(), http::answer_with([](const auto&, const auto&) {
           return http::text_response(200, "ok\n");
         })});
    return routes;
  }

  Log log_{"event-reporter"};
  SharedParts shared_;
  Mode mode_;
  ShardLeases leases_;
  Resync resync_;
  RequestedReports requested_;
  http::Router router_;
  http::Server main_port_;
};

template <class Mode>
DaemonApp make_app(const DaemonContext& context, Environment environment,
                   std::shared_ptr<Config> config) {
  const auto app = std::make_shared<App<Mode>>(context, std::move(environment));
  auto frame = daemon_app(app, std::move(config));
  frame.ready_checks = app->ready_checks();
  frame.commands["/refused/retry"] = [app](std::string_view) { return app->retry_refused(); };
  frame.pages["/journal"] = [app](std::string_view query) { return app->journal(query); };
  return frame;
}

}  // namespace

DaemonSpec event_reporter() {
  return daemon_spec<Config>(
      "event-reporter", "Reports what changes in Argo CD and its companions to the control plane.",
      [](const DaemonContext& context, std::shared_ptr<Config> config) {
        auto environment = read_environment(*config, context.environment);
        if (environment) {
          return config->mode == Config::Mode::app
                     ? make_app<ApplicationMode>(context, std::move(*environment), config)
                     : make_app<ResourceMode>(context, std::move(*environment), config);
        }
        DaemonApp frame;
        frame.start = [error = environment.error()]() -> Task<Result<void>> {
          co_return std::unexpected(error);
        };
        frame.stop = [](Deadline) -> Task<> { co_return; };
        return frame;
      });
}

}  // namespace gitops::reporter
