#include "request-router/app.hpp"

#include <memory>
#include <utility>

#include <unistd.h>

#include "common/http/proxy.hpp"
#include "common/http/resolve.hpp"
#include "request-router/access_log.hpp"
#include "request-router/config.hpp"
#include "request-router/routes_file.hpp"
#include "request-router/routing.hpp"
#include "request-router/traffic.hpp"

namespace gitops::router {
namespace {

constexpr auto kHousekeeping = std::chrono::seconds(1);
constexpr auto kProbePeriod = std::chrono::seconds(5);
constexpr auto kProbeAgain = std::chrono::seconds(1);  // while it is down

http::ProxyOptions proxy_options(const Config& config) {
  http::ProxyOptions options;
  options.address = config.listen_address;
  options.port = static_cast<std::uint16_t>(config.port);
  options.max_connections = static_cast<std::size_t>(config.max_connections);
  options.head_timeout = config.head_timeout;
  options.idle_timeout = config.idle_timeout;
  if (!config.tls_certificate_file.empty()) {
    options.tls = http::TlsOptions{.certificate_file = config.tls_certificate_file,
                                   .key_file = config.tls_key_file};
  }
  return options;
}

// Owns and wires every part. Members are in order of dependence: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config)
      : config_(config),
        resolver_(context.executor, context.pool),
        loop_(context.executor, resolver_),
        routes_file_(config.routes_file, config.routes),
        access_log_(STDOUT_FILENO),
        traffic_(context.metrics),
        reloads_(context.metrics.counter("gitops_router_reloads_total",
                                         "Routes files that were taken over")),
        bad_reloads_(context.metrics.counter("gitops_router_bad_reloads_total",
                                             "Routes files that were not, because of mistakes")),
        connections_(context.metrics.gauge("gitops_router_connections", "Connections of clients")),
        server_(loop_, proxy_options(config),
                {.decide = [this](const auto& head,
                                  const auto& peer) { return routing_->decide(head, peer); },
                 .failed =
                     [this](const auto* head, const auto* route, auto failure, int status,
                            auto detail) {
                       return routing_->failed(head, route, failure, status, detail);
                     },
                 .done = [this](const auto& record) { done(record); }}),
        tasks_(context.executor,
               [fail = context.fail](const std::string& task, const std::string& what) {
                 fail(task + ": " + what);
               }) {}

  Task<Result<void>> start() {
    auto settings = routes_file_.read();
    if (!settings) co_return std::unexpected(settings.error());
    use(*settings);
    if (auto listening = server_.listen(); !listening) co_return listening;
    log_.info("routing", {{"port", server_.port()},
                          {"app_proxy", settings->app_proxy_url},
                          {"workflows", settings->workflows_url},
                          {"tls", !config_.tls_certificate_file.empty()}});
    tasks_.spawn("housekeeping", [this] { return keep_house(); });
    tasks_.spawn("probe", [this] { return probe(); });
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    co_await server_.stop(deadline);
    tasks_.cancel();
    co_await tasks_.join();
    access_log_.flush();
  }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks() {
    return {{"app-proxy", [this] { return app_proxy_down_; }}};
  }
  [[nodiscard]] std::string status() const {
    return "connections: " + std::to_string(server_.connections()) + "\napp-proxy: " +
           (app_proxy_down_.empty() ? std::string("reachable") : app_proxy_down_) + "\n";
  }

 private:
  void use(const RouteSettings& settings) {
    routing_ = std::make_shared<Routing>(loop_, settings, [this] { return app_proxy_down_; });
  }

  void done(const http::ExchangeRecord& record) {
    traffic_.count(record);
    Routing::leave(record);
    if (!config_.access_log) return;
    const auto client = record.head == nullptr ? record.peer->text
                                               : routing_->client_of(*record.head, *record.peer);
    access_log_.add(record, client, wall_now());
  }

  // Once a second: what was logged, connections that nobody uses, the routes file.
  Task<> keep_house() {
    while (true) {
      co_await sleep_for(kHousekeeping);
      access_log_.flush();
      routing_->sweep();
      connections_.Set(static_cast<double>(server_.connections()));
      if (routes_file_.changed()) reload();
    }
  }

  void reload() {
    const auto settings = routes_file_.read();
    if (settings) {
      use(*settings);
      reloads_.Increment();
      log_.info("took over the routes file", {{"file", config_.routes_file}});
    } else {
      bad_reloads_.Increment();
      log_.error("the routes file has mistakes; the routes in force stay",
                 {{"error", settings.error().message}});
    }
  }

  Task<> probe() {
    while (true) {
      const auto routing = routing_;
      const auto connected = co_await routing->app_proxy().connect();
      const std::string why = connected ? std::string{} : connected.error().message;
      if (why.empty() != app_proxy_down_.empty()) {
        log_.info(why.empty() ? "app-proxy can be reached" : "app-proxy cannot be reached",
                  {{"error", why}});
      }
      app_proxy_down_ = why;
      co_await sleep_for(why.empty() ? kProbePeriod : kProbeAgain);
    }
  }

  const Config& config_;
  Log log_{"request-router"};
  http::Resolver resolver_;
  http::ProxyLoop loop_;
  RoutesFile routes_file_;
  AccessLog access_log_;
  Traffic traffic_;
  Counter& reloads_;
  Counter& bad_reloads_;
  Gauge& connections_;
  std::string app_proxy_down_ = "not asked yet";
  std::shared_ptr<Routing> routing_;
  http::ProxyServer server_;
  TaskGroup tasks_;
};

}  // namespace

DaemonSpec request_router() {
  const auto config = std::make_shared<Config>();
  DaemonSpec spec;
  spec.name = "request-router";
  spec.summary = "The one door of a runtime: app-proxy, the workflows UI and webhooks.";
  spec.admin_address_env = "METRICS_LISTEN_ADDRESS";
  spec.bind = [config](ConfigReader& reader) { bind(reader, *config); };
  spec.make = [config](const DaemonContext& context) {
    const auto app = std::make_shared<App>(context, *config);
    DaemonApp frame;
    frame.start = [app, config] { return app->start(); };
    frame.stop = [app](Deadline deadline) { return app->stop(deadline); };
    frame.ready_checks = app->ready_checks();
    frame.status = [app] { return app->status(); };
    return frame;
  };
  return spec;
}

}  // namespace gitops::router
