#include "tunnel-server/app.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <prometheus/gauge.h>

#include "common/core/process.hpp"
#include "common/core/text.hpp"
#include "common/net/resolve.hpp"
#include "common/proxy/server.hpp"
#include "tunnel-server/api.hpp"
#include "tunnel-server/client_registry.hpp"
#include "tunnel-server/config.hpp"
#include "tunnel-server/vhost_proxy.hpp"

namespace gitops::tunnel_server {
namespace {

// Time limit for a user to send the whole body of a request.
constexpr auto kBodyDeadline = std::chrono::hours(1);

// Version for clients. frp's clients expect the form a.b.c.
constexpr const char* kWireVersion = "1.0.0";

constexpr auto kHousekeeping = std::chrono::seconds(1);
constexpr std::uint64_t kOtherFiles = 100;  // logs, listeners, libraries
// Time for requests in flight while draining: of users accepted last, and of users who do not know
// yet that their connection ends.
constexpr auto kLastRequests = std::chrono::milliseconds(1'200);
// Time for clients to end after the last user has left.
constexpr auto kGoodbye = std::chrono::milliseconds(500);

Authorizer::Options authorizer_options(const Config& config) {
  return {.token = config.token,
          .token_file = config.token_file,
          .runtimes_file = config.runtimes_file,
          .plugin_url = config.plugin_url,
          .plugin_tls = {.ca_file = config.plugin_ca_file},
          .plugin_operations = config.plugin_operations,
          .plugin_timeout = config.plugin_timeout};
}

ClientRegistry::Options client_options(const Config& config) {
  ClientRegistry::Options options;
  options.listen = {.address = config.tunnel_address,
                    .port = static_cast<std::uint16_t>(config.tunnel_port)};
  options.handshake = {
      .tls = {.ca_file = config.tunnel_client_ca_file,
              .certificate_file = config.tunnel_certificate_file,
              .key_file = config.tunnel_key_file},
      .require_tls = config.tunnel_requires_tls || !config.tunnel_client_ca_file.empty()};
  options.session.control.version = kWireVersion;
  options.session.control.max_pool = config.max_pool;
  options.session.control.servers = config.servers;
  options.session.auth_scopes = config.auth_scopes;
  options.links = config.links;
  options.session.max_streams = static_cast<std::size_t>(config.max_streams);
  options.session.link.receive_window = static_cast<std::uint32_t>(config.stream_window);
  // Two thirds of the timeout for silence, one third for the response to the ping.
  options.session.link.ping_timeout = config.heartbeat_timeout / 3;
  options.session.link.ping_interval = config.heartbeat_timeout - options.session.link.ping_timeout;
  options.subdomain_host = config.subdomain_host;
  options.vhost_port = config.port;
  options.max_clients = static_cast<std::size_t>(config.max_clients);
  options.max_unauthenticated = static_cast<std::size_t>(config.max_unauthenticated);
  options.max_unauthenticated_per_address = static_cast<std::size_t>(
      config.max_unauthenticated_per_address > 0 ? config.max_unauthenticated_per_address
                                                 : config.max_unauthenticated);
  return options;
}

proxy::RouteLimits route_limits(const Config& config) {
  return {.max_body = static_cast<std::uint64_t>(config.max_body),
          .body_deadline = kBodyDeadline,
          .answer_timeout = config.answer_timeout,
          .body_timeout = config.stream_timeout,
          .stream_timeout = config.stream_timeout,
          .websocket = true};
}

proxy::ServerOptions user_options(const Config& config, Tracer& tracer) {
  proxy::SharedLimits limits;
  limits.max_connections = static_cast<std::size_t>(config.max_connections);
  limits.max_connections_per_peer = std::max<std::size_t>(1, limits.max_connections * 3 / 4);
  proxy::ServerOptions options;
  options.listen = {.address = config.listen_address,
                    .port = static_cast<std::uint16_t>(config.port)};
  options.idle_timeout = config.idle_timeout;
  options.totals = std::make_shared<proxy::Totals>(limits);
  options.tracer = &tracer;
  if (!config.certificate_file.empty()) {
    options.tls =
        net::TlsOptions{.certificate_file = config.certificate_file, .key_file = config.key_file};
  }
  return options;
}

// Owns and connects all parts. Members are in order of dependency: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config)
      : config_(config),
        names_(context.metrics),
        authorizer_(context.executor, names_, authorizer_options(config)),
        traffic_(context.metrics),
        hosts_gauge_(context.metrics.gauge("gitops_tunnel_server_hosts", "Hosts that are served")),
        clients_gauge_(
            context.metrics.gauge("gitops_tunnel_server_clients", "Clients that are logged in")),
        connections_gauge_(
            context.metrics.gauge("gitops_tunnel_server_connections", "Connections of users")),
        clients_(context.executor, authorizer_, table_, context.metrics, client_options(config)),
        vhost_proxy_(
            table_, traffic_,
            {.trusted_proxies = config.trusted_proxies,
             .max_requests_per_host = static_cast<std::size_t>(config.max_requests_per_host),
             .connect_timeout = config.connect_timeout,
             .limits = route_limits(config),
             .session = [this](SessionId id) { return clients_.session(id); },
             .ban = [this](const std::string& domain) { return clients_.ban_of(domain); }}),
        user_options_(user_options(config, context.tracer)),
        users_(context.executor, user_options_, vhost_proxy_.policy()),
        api_(context.executor, clients_, table_,
             {.address = config.api_address,
              .port = static_cast<std::uint16_t>(config.api_port),
              .token = config.api_token,
              .token_file = config.api_token_file}),
        tasks_(context.executor,
               [fail = context.fail](const std::string& task, const std::string& what) {
                 fail(task + ": " + what);
               }) {
    table_.changed = [this](HostTable::Host& host) { vhost_proxy_.update(host); };
  }

  Task<Result<void>> start() {
    if (auto checked = authorizer_.check(); !checked) co_return checked;
    allow_open_files();
    if (auto listening = clients_.listen(); !listening) co_return listening;
    if (auto listening = users_.listen(); !listening) co_return listening;
    if (config_.api_port > 0) {
      if (auto listening = api_.listen(); !listening) co_return listening;
    }
    log_.info("serving", {{"tunnel_port", clients_.port()},
                          {"tunnel_tls", !config_.tunnel_certificate_file.empty()},
                          {"port", users_.port()},
                          {"tls", !config_.certificate_file.empty()},
                          {"subdomain_host", config_.subdomain_host}});
    if (config_.any_client) log_.warning("any client may log in and offer any host");
    tasks_.spawn("housekeeping", [this] { return do_housekeeping(); });
    is_listening_ = true;
    co_return Result<void>{};
  }

  // Drains users first, then clients: connected users still need their clients, and the other
  // clients are needed by other servers.
  Task<> stop(Deadline deadline) {
    is_listening_ = false;
    clients_.drain();
    users_.wind_down();
    if (user_options_.totals->connections > 0) {
      co_await sleep_until(std::min(deadline, deadline_after(kLastRequests)));
    }
    users_.drain();
    vhost_proxy_.release_clients();
    clients_.drain_sessions();
    co_await users_.stop(std::max(Clock::now(), deadline - kGoodbye));
    co_await clients_.stop();
    co_await api_.stop(Clock::now());
    tasks_.cancel();
    co_await tasks_.join();
  }

  [[nodiscard]] std::string not_ready_because() const {
    return is_listening_ ? std::string() : "not listening";
  }

  [[nodiscard]] StatusReport status() const {
    auto clients = status_count("clients", logged_in());
    for (const auto& session : clients_.sessions()) {
      if (clients.details.size() == kMaxStatusDetails) {
        ++clients.omitted;
      } else {
        clients.add_detail(entry_of(*session));
      }
    }
    return {status_count("hosts", table_.size()),
            status_count("connections of users", user_options_.totals->connections),
            std::move(clients)};
  }

 private:
  // Contains verified data only, nothing that the client claims.
  [[nodiscard]] StatusEntry entry_of(const Session& session) const {
    const auto domains = table_.domains_of(session.id());
    const auto state = state_of(session, domains);
    StatusEntry entry{.name = session.client(),
                      .state = state == ClientState::serving       ? StatusState::ok
                               : state == ClientState::standing_by ? StatusState::standby
                                                                   : StatusState::pending,
                      .message = std::string(to_string(state)),
                      .since = session.since()};
    if (!domains.empty()) {
      std::vector<std::string> names;
      for (const auto& domain : domains) names.push_back(domain.name);
      entry.add_text("hosts", join(names, " "));
    }
    entry.add_count("connections", session.carrying(), "connections of users");
    return entry;
  }

  [[nodiscard]] std::size_t logged_in() const {
    const auto sessions = clients_.sessions();
    return static_cast<std::size_t>(std::ranges::count_if(
        sessions, [](const auto& session) { return session->is_logged_in(); }));
  }

  // Raises the limit of open files: one descriptor for each user and each client.
  void allow_open_files() const {
    const auto needed =
        static_cast<std::uint64_t>(config_.max_connections + config_.max_clients) + kOtherFiles;
    const auto allowed = raise_open_files(needed);
    if (allowed >= needed) return;
    log_.warning(
        "the limit of open files (RLIMIT_NOFILE) is too low for max-connections and "
        "tunnel.max-clients",
        {{"limit", allowed}, {"needed", needed}});
  }

  Task<> do_housekeeping() {
    while (true) {
      co_await sleep_for(kHousekeeping);
      vhost_proxy_.sweep();
      clients_.check_again();
      hosts_gauge_.Set(static_cast<double>(table_.size()));
      clients_gauge_.Set(static_cast<double>(logged_in()));
      connections_gauge_.Set(static_cast<double>(user_options_.totals->connections));
    }
  }

  const Config& config_;
  Log log_{"tunnel-server"};
  net::Resolver names_;
  Authorizer authorizer_;
  Traffic traffic_;
  HostTable table_;
  Gauge& hosts_gauge_;
  Gauge& clients_gauge_;
  Gauge& connections_gauge_;
  ClientRegistry clients_;
  VhostProxy vhost_proxy_;
  proxy::ServerOptions user_options_;
  proxy::Server users_;
  Api api_;
  bool is_listening_ = false;
  TaskGroup tasks_;
};

}  // namespace

DaemonSpec tunnel_server() {
  return daemon_spec<Config>(
      "tunnel-server", "Gives runtimes without an ingress a host, through tunnels that they open.",
      [](const DaemonContext& context, std::shared_ptr<Config> config) {
        const auto app = std::make_shared<App>(context, *config);
        auto frame = daemon_app(app, std::move(config));
        frame.ready_checks = {{"ports", [app] { return app->not_ready_because(); }}};
        return frame;
      });
}

}  // namespace gitops::tunnel_server
