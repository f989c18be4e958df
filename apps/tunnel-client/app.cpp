#include "tunnel-client/app.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/core/backoff.hpp"
#include "common/core/credential.hpp"
#include "common/core/process.hpp"
#include "common/net/connector.hpp"
#include "tunnel-client/config.hpp"
#include "tunnel-client/dialer.hpp"
#include "tunnel-client/session.hpp"

namespace gitops::tunnel {
namespace {

// Full jitter: the clients of a server that restarts spread over the first second, and then over
// more and more.
constexpr Backoff::Options kReconnect{.initial = std::chrono::seconds(1),
                                      .max = std::chrono::seconds(30)};
// A session that lasted as long was a good one.
constexpr auto kGoodSession = std::chrono::seconds(30);

// For requests that the server sends before it has heard that the proxy is closed.
constexpr auto kLastRequests = std::chrono::milliseconds(500);

// frp's servers before 0.52 refuse a version below 0.18.0, and one that is not of the form a.b.c.
constexpr const char* kWireVersion = "1.0.0";

// As Go names it.
#ifdef __aarch64__
constexpr const char* kArchitecture = "arm64";
#else
constexpr const char* kArchitecture = "amd64";
#endif

// Owns and connects all parts. Members are in order of dependence: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config, http::ProxySettings proxy)
      : config_(config),
        executor_(context.executor),
        authorization_(config.authorization_file.empty()
                           ? Credential::fixed(config.authorization)
                           : Credential::file(config.authorization_file)),
        traffic_(context.metrics),
        sessions_(context.metrics.counter("gitops_tunnel_client_sessions_total",
                                          "Connections to the server that were made")),
        serving_(context.metrics.gauge("gitops_tunnel_client_serving",
                                       "1 while the server sends users here")),
        names_(context.metrics),
        dialer_(context.executor, names_, config, std::move(proxy)),
        backoff_(kReconnect, random_seed()),
        changed_(context.executor),
        tasks_(context.executor,
               [fail = context.fail](const std::string& task, const std::string& what) {
                 fail(task + ": " + what);
               }) {}

  Task<Result<void>> start() {
    log_.info("tunnel", {{"server", dialer_.server()},
                         {"subdomain", config_.subdomain_prefix},
                         {"forward_to", upstream()},
                         {"insecure", config_.insecure}});
    tasks_.spawn("sessions", [this] { return keep_session(); });
    tasks_.spawn("gauge", [this] { return keep_gauge(); });
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    is_stopping_ = true;
    if (session_) {
      session_->stop();
      co_await sleep_until(std::min(deadline, deadline_after(kLastRequests)));
    }
    while (session_ && session_->carrying() > 0 && Clock::now() < deadline) {
      co_await changed_.wait(deadline);
    }
    tasks_.cancel();
    co_await tasks_.join();
  }

  [[nodiscard]] std::string not_ready_because() const {
    if (!session_) return down_.empty() ? "connecting" : down_;
    const auto state = session_->state();
    if (state == Session::State::serving) return {};
    const auto refusal = session_->refusal();
    std::string why(to_string(state));
    return refusal.empty() ? why : why + ": " + refusal;
  }

  [[nodiscard]] std::string status() const {
    const auto why = not_ready_because();
    std::string text =
        "server: " + dialer_.server() + "\nstate: " + (why.empty() ? "serving" : why);
    if (session_) {
      text += "\nsince: " + format_rfc3339(session_since_) +
              "\nserver version: " + session_->server_version() +
              "\nconnections at the moment: " + std::to_string(session_->carrying());
    }
    return text + "\n";
  }

 private:
  [[nodiscard]] std::string upstream() const {
    return config_.forward_host + ":" + std::to_string(config_.forward_port);
  }

  // -- sessions --

  Task<> keep_session() {
    while (!is_stopping_) {
      const auto begin = Clock::now();
      const auto error = co_await serve();
      if (Clock::now() - begin >= kGoodSession) backoff_.reset();
      if (is_stopping_) break;
      down_ = error.message;
      const auto wait = backoff_.next();
      log_.warning("no session with the tunnel's server; connecting again",
                   {{"error", error.message},
                    {"code", gitops::to_string(error.code)},
                    {"wait_ms", wait.count()}});
      co_await sleep_for(wait);
    }
  }

  // One connection and what becomes of it.
  Task<Error> serve() {
    auto server = co_await dialer_.connect(deadline_after(config_.connect_timeout));
    if (!server) co_return server.error();
    sessions_.Increment();
    session_since_ = wall_now();
    session_.emplace(
        executor_, std::move(*server), session_options(),
        [this](Deadline deadline) { return connect_upstream(deadline); }, traffic_, changed_);
    const Ended ended{*this};
    auto error = co_await session_->run();
    run_id_ = session_->run_id();
    co_return error;
  }

  // Forgets the session however it is left.
  struct Ended {
    App& app;
    ~Ended() {
      app.session_.reset();
      app.changed_.notify_all();
    }
  };

  [[nodiscard]] Session::Options session_options() {
    Session::Options options{.connect_timeout = config_.connect_timeout,
                             .idle_timeout = config_.idle_timeout};
    auto& control = options.control;
    control.login = {.version = kWireVersion,
                     .os = "linux",
                     .arch = kArchitecture,
                     .run_id = run_id_,
                     .pool_count = config_.pool_size};
    control.token = config_.server_token;
    NewProxy proxy{.proxy_name = config_.subdomain_prefix,
                   .proxy_type = "http",
                   .subdomain = config_.subdomain_prefix,
                   .locations = {config_.location},
                   .ips_allow_list = config_.ips_allow_list};
    if (auto token = authorization_.current(); !token.empty()) {
      proxy.metas.emplace("Authorization", std::move(token));
    }
    control.proxies.push_back(std::move(proxy));
    return options;
  }

  Task<Result<std::unique_ptr<net::Channel>>> connect_upstream(Deadline deadline) {
    auto channel =
        co_await net::connect_host(names_, config_.forward_host,
                                   static_cast<std::uint16_t>(config_.forward_port), {}, deadline);
    if (!channel) co_return fail(upstream(), std::move(channel.error()));
    co_return std::move(*channel);
  }

  Task<> keep_gauge() {
    while (true) {
      serving_.Set(not_ready_because().empty() ? 1 : 0);
      co_await sleep_for(std::chrono::seconds(1));
    }
  }

  const Config& config_;
  Executor executor_;
  Log log_{"tunnel-client"};
  Credential authorization_;
  Traffic traffic_;
  Counter& sessions_;
  Gauge& serving_;
  net::Resolver names_;
  Dialer dialer_;
  Backoff backoff_;
  std::string run_id_;  // of the last session
  std::string down_;    // why there is no session
  WallTime session_since_{};
  std::optional<Session> session_;
  Event changed_;  // connections of the session, and whether there is one
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace

DaemonSpec tunnel_client() {
  const auto config = std::make_shared<Config>();
  DaemonSpec spec;
  spec.name = "tunnel-client";
  spec.summary = "Opens a tunnel outwards, through which a runtime without an ingress is reached.";
  spec.admin_address_env = "METRICS_LISTEN_ADDRESS";
  spec.bind = [config](ConfigReader& reader) { bind(reader, *config); };
  spec.make = [config](const DaemonContext& context) {
    DaemonApp frame;
    auto proxy = http::proxy_settings(context.environment);
    if (!proxy) {
      frame.start = [error = proxy.error()]() -> Task<Result<void>> {
        co_return std::unexpected(error);
      };
      frame.stop = [](Deadline) -> Task<> { co_return; };
      return frame;
    }
    const auto app = std::make_shared<App>(context, *config, std::move(*proxy));
    frame.start = [app, config] { return app->start(); };
    frame.stop = [app](Deadline deadline) { return app->stop(deadline); };
    frame.ready_checks = {{"tunnel", [app] { return app->not_ready_because(); }}};
    frame.status = [app] { return app->status(); };
    return frame;
  };
  return spec;
}

}  // namespace gitops::tunnel
