#include "request-router/app.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <unistd.h>

#include "common/core/process.hpp"
#include "common/daemon/loop_thread.hpp"
#include "request-router/config.hpp"
#include "request-router/named_proxies.hpp"
#include "request-router/routes_file.hpp"
#include "request-router/worker.hpp"

namespace gitops::router {
namespace {

constexpr auto kHousekeeping = std::chrono::milliseconds(1'000);
constexpr auto kCatchUp = std::chrono::milliseconds(50);
constexpr auto kLookUpPeriod = std::chrono::seconds(2);  // of names of trusted proxies
constexpr const char* kNotAskedYet = "not asked yet";    // status of app-proxy
constexpr auto kProbePeriod = std::chrono::seconds(5);
constexpr auto kProbeAgain = std::chrono::seconds(1);  // while app-proxy is down
constexpr std::uint64_t kOtherFiles = 100;             // logs, listeners, lookups, libraries
constexpr auto kLastLines = std::chrono::seconds(1);   // for a slow reader at the end

// Owns and connects all parts: a worker for each loop, the daemon's own loop first, and their
// shared state. Members are in order of dependency: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config)
      : config_(config),
        daemon_(context),
        routes_file_(config.routes_file, config.routes),
        access_log_(STDOUT_FILENO,
                    context.metrics.counter("gitops_router_access_log_dropped_total",
                                            "Lines that standard output did not take in time")),
        traffic_(context.metrics),
        reloads_(context.metrics.counter("gitops_router_reloads_total",
                                         "Routes files that were taken over")),
        bad_reloads_(context.metrics.counter("gitops_router_bad_reloads_total",
                                             "Routes files that were not, because of mistakes")),
        connections_(context.metrics.gauge("gitops_router_connections", "Connections of clients")),
        names_(context.metrics),
        event_source_names_(
            context.metrics,
            {.name = "event-source-lookup", .threads = 4, .max_queued_per_client = 16}),
        webhooks_(context.executor, context.metrics, {.journal_folder = config.webhook_journal}),
        shared_{.config = config,
                .names = names_,
                .event_source_names = event_source_names_,
                .access_log = access_log_,
                .traffic = traffic_,
                .webhooks = webhooks_,
                .totals = std::make_shared<proxy::Totals>(shared_limits(config)),
                .tracer = &context.tracer,
                .app_proxy_down = [this] { return app_proxy_down(); },
                .fail =
                    [executor = context.executor, fail = context.fail](const std::string& why) {
                      asio::dispatch(executor, [fail, why] { fail(why); });
                    }},
        tasks_(context.executor,
               [fail = context.fail](const std::string& task, const std::string& what) {
                 fail(task + ": " + what);
               }) {}

  Task<Result<void>> start() {
    (void)routes_file_.changed();  // looks at the version of now
    const auto settings = routes_file_.read();
    if (!settings) co_return std::unexpected(settings.error());
    allow_open_files();
    settings_ = *settings;
    co_await named_proxies_.look_up(settings_.trusted_proxy_names);
    gates_ = std::make_shared<Gates>(gate_limits(*settings));
    auto keeping = webhooks_.start([this](const SourceName& source) { return way_to(source); });
    if (!keeping) co_return keeping;
    auto port = static_cast<std::uint16_t>(config_.port);
    for (std::int64_t i = 0; i < config_.loops; ++i) {
      auto& worker = *workers_.emplace_back(
          std::make_unique<Worker>(i == 0 ? daemon_.executor : daemon_.add_loop(), port, shared_));
      Result<void> started;
      co_await on_loop_of(worker, [&] { started = worker.start(settings_in_force(), gates_); });
      if (!started) co_return started;
      port = worker.port();
    }
    log_.info("routing",
              {{"port", port},
               {"app_proxy", settings->app_proxy.to_string()},
               {"workflows", settings->workflows ? settings->workflows->to_string() : ""},
               {"tls", !config_.tls_certificate_file.empty()},
               {"loops", config_.loops}});
    tasks_.spawn("housekeeping", [this] { return do_housekeeping(); });
    tasks_.spawn("probe", [this] { return probe(); });
    tasks_.spawn("proxies", [this] { return follow_proxies(); });
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    tasks_.cancel();
    co_await tasks_.join();
    for (const auto& worker : workers_) {
      co_await on_loop_of(*worker, [&worker] { worker->drain(); });
    }
    for (const auto& worker : workers_) {
      co_await run_on_loop(worker->executor(),
                           [&worker, deadline] { return worker->stop(deadline); });
    }
    co_await webhooks_.stop(deadline);
    const auto give_up = deadline_after(kLastLines);
    while (!access_log_.flush() && Clock::now() < give_up) {
      co_await sleep_for(std::chrono::milliseconds(10));
    }
  }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks() {
    return {{"app-proxy", [this] { return app_proxy_down(); }}};
  }
  [[nodiscard]] std::string webhooks() const { return webhooks_.page(); }
  std::string redeliver(std::string_view query) {
    return webhooks_.redeliver(http::query_parameter(query, "event_source"));
  }
  [[nodiscard]] StatusReport status() const {
    auto app_proxy = status_entry("app-proxy", app_proxy_down(), "reachable");
    if (app_proxy.message == kNotAskedYet) app_proxy.state = StatusState::pending;
    return {status_count("connections", shared_.totals->connections), std::move(app_proxy),
            status_count("webhooks kept", webhooks_.size())};
  }

 private:
  template <class Function>
  static Task<> on_loop_of(const Worker& worker, Function function) {
    return run_on_loop(worker.executor(), [function = std::move(function)]() -> Task<> {
      function();
      co_return;
    });
  }

  // Returns the route of the daemon's own loop, which is the first.
  [[nodiscard]] Result<std::shared_ptr<const WebhookRoute>> way_to(const SourceName& source) const {
    const auto routing = workers_.empty() ? nullptr : workers_.front()->routing();
    if (!routing) return gitops::fail(ErrorCode::unavailable, "the router does not serve yet");
    return routing->webhook_route(source.ns, source.event_source);
  }

  static GateLimits gate_limits(const RouteSettings& settings) {
    return {.rate = settings.webhook_rate, .concurrency = settings.webhook_concurrency};
  }

  static proxy::SharedLimits shared_limits(const Config& config) {
    proxy::SharedLimits limits;
    limits.max_connections = static_cast<std::size_t>(config.max_connections);
    limits.max_connections_per_peer = std::max<std::size_t>(1, limits.max_connections * 3 / 4);
    return limits;
  }

  // Raises the limit of open files: two descriptors for each client, its own connection and the one
  // to its upstream.
  void allow_open_files() const {
    const auto needed = 2 * static_cast<std::uint64_t>(config_.max_connections) + kOtherFiles;
    const auto allowed = raise_open_files(needed);
    if (allowed >= needed) return;
    log_.warning(
        "the limit of open files (RLIMIT_NOFILE) is too low for max-connections",
        {{"limit", allowed}, {"needed", needed}, {"max_connections", config_.max_connections}});
  }

  [[nodiscard]] std::string app_proxy_down() const {
    const std::lock_guard lock(app_proxy_mutex_);
    return app_proxy_down_;
  }

  // Checks the routes file once a second; flushes buffered lines of standard output more often.
  Task<> do_housekeeping() {
    while (true) {
      co_await sleep_for(access_log_.flush() ? kHousekeeping : kCatchUp);
      connections_.Set(static_cast<double>(shared_.totals->connections));
      webhooks_.count();
      if (routes_file_.changed()) co_await reload();
    }
  }

  Task<> reload() {
    const auto settings = routes_file_.read();
    if (!settings) {
      bad_reloads_.Increment();
      const auto verdict = reload_errors_.check(settings.error().message, Clock::now());
      if (verdict.pass) {
        log_.error("the routes file has mistakes; the routes in force stay",
                   {{"error", settings.error().message}, {"suppressed", verdict.suppressed}});
      }
      co_return;
    }
    settings_ = *settings;
    gates_->set(gate_limits(settings_));
    co_await update_workers();
    reloads_.Increment();
    log_.info("took over the routes file", {{"file", config_.routes_file}});
  }

  // Returns the loaded settings with the current addresses of named trusted proxies.
  [[nodiscard]] RouteSettings settings_in_force() const {
    auto settings = settings_;
    for (const auto& address : named_proxies_.addresses()) settings.trusted_proxies.add(address);
    return settings;
  }

  Task<> update_workers() {
    for (const auto& worker : workers_) {
      // Computed for each loop, since the settings may have changed during the previous call.
      co_await on_loop_of(*worker, [&worker, settings = settings_in_force(), gates = gates_] {
        worker->use(settings, gates);
      });
    }
  }

  Task<> follow_proxies() {
    while (true) {
      co_await sleep_for(kLookUpPeriod);
      if (co_await named_proxies_.look_up(settings_.trusted_proxy_names)) co_await update_workers();
    }
  }

  Task<> probe() {
    while (true) {
      const auto routing = workers_.front()->routing();
      const auto connected = co_await routing->app_proxy().connect();
      const std::string why = connected ? std::string{} : connected.error().message;
      if (why.empty() != app_proxy_down().empty()) {
        log_.info(why.empty() ? "app-proxy can be reached" : "app-proxy cannot be reached",
                  {{"error", why}});
      }
      {
        const std::lock_guard lock(app_proxy_mutex_);
        app_proxy_down_ = why;
      }
      co_await sleep_for(why.empty() ? kProbePeriod : kProbeAgain);
    }
  }

  const Config& config_;
  DaemonContext daemon_;
  Log log_{"request-router"};
  RoutesFile routes_file_;
  LineWriter access_log_;
  Traffic traffic_;
  Counter& reloads_;
  Counter& bad_reloads_;
  RepeatFilter reload_errors_{std::chrono::minutes(1)};
  Gauge& connections_;
  mutable std::mutex app_proxy_mutex_;
  std::string app_proxy_down_ = kNotAskedYet;
  net::Resolver names_;
  net::Resolver event_source_names_;
  RouteSettings settings_;
  NamedProxies named_proxies_{names_};
  Webhooks webhooks_;
  WorkerContext shared_;
  std::shared_ptr<Gates> gates_;
  std::vector<std::unique_ptr<Worker>> workers_;
  TaskGroup tasks_;
};

}  // namespace

DaemonSpec request_router() {
  return daemon_spec<Config>(
      "request-router",
      "The one entry point of a runtime: app-proxy, the workflows UI and webhooks.",
      [](const DaemonContext& context, std::shared_ptr<Config> config) {
        const auto app = std::make_shared<App>(context, *config);
        auto frame = daemon_app(app, std::move(config));
        frame.ready_checks = app->ready_checks();
        frame.pages = {
            {"/webhooks", [app](std::string_view) { return AdminPage{.body = app->webhooks()}; }}};
        frame.commands = {{"/webhooks/redeliver", [app](std::string_view query) {
                             return AdminPage{.body = app->redeliver(query)};
                           }}};
        return frame;
      });
}

}  // namespace gitops::router
