#include "tunnel-client/app.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/core/backoff.hpp"
#include "common/core/credential.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/process.hpp"
#include "common/net/connector.hpp"
#include "tunnel-client/config.hpp"
#include "tunnel-client/dialer.hpp"
#include "tunnel-client/link_keeper.hpp"

namespace gitops::tunnel {
namespace {

// Servers at a time, those included that other servers tell of.
constexpr std::size_t kMaxServers = 8;

// A refused proxy is asked for again soon: most often another pod of this runtime is leaving.
constexpr Backoff::Options kRefusedProxy{.initial = std::chrono::seconds(2),
                                         .max = std::chrono::seconds(5)};

// Servers with a heartbeatTimeout need Pings. Without yamux, which has its own, they are the signs of
// life, too: a server that vanished is noticed after 14 s.
constexpr auto kPingInterval = std::chrono::seconds(9);
constexpr auto kPongTimeout = std::chrono::seconds(14);

// frp's servers before 0.52 refuse a version below 0.18.0, and one that is not of the form a.b.c.
constexpr const char* kWireVersion = "1.0.0";

// As Go names it.
#ifdef __aarch64__
constexpr const char* kArchitecture = "arm64";
#else
constexpr const char* kArchitecture = "amd64";
#endif

// The least time between two looks at the servers.
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

// Stands in the name of a proxy of a group, behind its host: names are unique to frp's server.
constexpr char kGroupMark = '.';

bool contains(const auto& list, const auto& item) {
  return std::ranges::find(list, item) != list.end();
}

// Owns and connects all parts. Members are in order of dependence: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config, http::ProxySettings proxy)
      : config_(config),
        executor_(context.executor),
        metrics_(context.metrics),
        authorization_(config.authorization_file.empty()
                           ? Credential::fixed(config.authorization)
                           : Credential::file(config.authorization_file)),
        server_token_(config.server_token_file.empty()
                          ? Credential::fixed(config.server_token)
                          : Credential::file(config.server_token_file)),
        serving_(context.metrics.gauge("gitops_tunnel_client_serving",
                                       "1 while the server sends users here")),
        names_(context.metrics),
        proxy_(std::move(proxy)),
        changed_(context.executor),
        tasks_(context.executor,
               [fail = context.fail](const std::string& task, const std::string& what) {
                 fail(task + ": " + what);
               }) {
    upstreams_[config.subdomain_prefix] = {.host = config.forward_host,
                                           .port = static_cast<std::uint16_t>(config.forward_port)};
    for (const auto& item : config.extra_proxies) {
      if (auto extra = parse_extra_proxy(item)) {
        upstreams_[config.subdomain_prefix + "-" + extra->name] = std::move(extra->upstream);
      }
    }
  }

  Task<Result<void>> start() {
    authorization_in_use_ = authorization_.current();
    for (const auto& host : config_.server_hosts) {
      if (auto endpoint = parse_endpoint(host, config_.server_port)) {
        add_server(std::move(*endpoint), Server::Source::configured);
      }
    }
    log_.info("tunnel", {{"server", servers_.front()->settings.server},
                         {"servers", servers_.size()},
                         {"subdomain", config_.subdomain_prefix},
                         {"forward_to", to_text(upstreams_.at(config_.subdomain_prefix))},
                         {"insecure", config_.insecure}});
    tasks_.spawn("servers", [this] { return keep_servers(); });
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    is_stopping_ = true;
    for (const auto& link : links()) link->stop();
    while (!std::ranges::all_of(links(), &LinkKeeper::is_done) && Clock::now() < deadline) {
      co_await changed_.wait(deadline);
    }
    tasks_.cancel();
    co_await tasks_.join();
    for (auto* link : links()) co_await link->end();
  }

  [[nodiscard]] std::string not_ready_because() const {
    std::string why;
    for (const auto& server : servers_) {
      for (const auto& link : server->links) {
        if (!link->session() && !link->is_wanted()) continue;
        const auto reason = link->not_serving_because();
        if (reason.empty()) return {};
        if (link != server->links.front()) continue;
        if (!why.empty()) why += "; ";
        why += servers_.size() == 1 ? reason : server->settings.server + ": " + reason;
      }
    }
    return why;
  }

  [[nodiscard]] std::string status() const {
    const auto why = not_ready_because();
    std::string text = "state: " + (why.empty() ? "serving" : why) + "\n";
    for (const auto& server : servers_) {
      text += "\nserver: " + server->settings.server;
      if (server->source == Server::Source::told) text += " (another server told of it)";
      text += "\n";
      for (const auto& link : server->links) text += link->status();
    }
    return text;
  }

  // A command of the admin port.
  AdminPage replace_links() {
    std::size_t count = 0;
    for (auto* link : links()) {
      if (!link->session()) continue;
      link->replace();
      ++count;
    }
    return {.body = "{\"replacing\":" + std::to_string(count) + "}\n"};
  }

 private:
  struct Server {
    enum class Source : std::uint8_t {
      configured,
      told,  // by another server
    };
    Server(const Executor& executor, net::Resolver& names, const Config& config, Endpoint server,
           http::ProxySettings proxy, Source from)
        : endpoint(server),
          source(from),
          dialer(executor, names, config, std::move(server), std::move(proxy)) {}

    Endpoint endpoint;
    Source source;
    Dialer dialer;
    LinkSettings settings;
    std::vector<std::unique_ptr<LinkKeeper>> links;
  };

  static std::string to_text(const Endpoint& endpoint) {
    return endpoint.host + ":" + std::to_string(endpoint.port);
  }

  [[nodiscard]] std::vector<LinkKeeper*> links() const {
    std::vector<LinkKeeper*> all;
    for (const auto& server : servers_) {
      for (const auto& link : server->links) all.push_back(link.get());
    }
    return all;
  }

  // -- servers --

  void add_server(Endpoint endpoint, Server::Source source) {
    auto server = std::make_unique<Server>(executor_, names_, config_, endpoint, proxy_, source);
    auto& dialer = server->dialer;
    server->settings = {
        .server = dialer.server(),
        .dial = [&dialer](Deadline deadline) { return dialer.connect(deadline); },
        .connect = [this](const std::string& name,
                          Deadline deadline) { return connect_upstream(name, deadline); },
        .session = [this, &dialer] { return session_options(dialer); },
        .has_group = !config_.group_key.empty()};
    // Servers that come and go share their labels, which are bounded so.
    const auto label = source == Server::Source::told ? "told" : dialer.server();
    for (int number = 1; number <= config_.links; ++number) {
      const Metrics::Labels labels{{"server", label}, {"link", std::to_string(number)}};
      server->links.push_back(std::make_unique<LinkKeeper>(
          executor_, server->settings, number, Traffic(metrics_, labels), changed_, random_seed()));
      server->links.back()->start();
    }
    server->links.front()->want(true);
    servers_.push_back(std::move(server));
  }

  Task<> keep_servers() {
    while (true) {
      want_links();
      take_new_token();
      co_await follow_the_told();
      for (const auto& server : servers_) {
        for (const auto& link : server->links) link->count();
      }
      serving_.Set(not_ready_because().empty() ? 1 : 0);
      co_await changed_.wait(deadline_after(std::chrono::seconds(1)));
      // Each connection of a user is a change, on which nothing here depends.
      co_await sleep_for(kBetweenLooks);
    }
  }

  // A server gets as many links as it takes.
  void want_links() const {
    for (const auto& server : servers_) {
      std::optional<std::int64_t> told;
      for (const auto& link : server->links) {
        const auto* session = link->session();
        if (session != nullptr && session->control().is_logged_in()) {
          told = std::max(told.value_or(1), session->control().links());
        }
      }
      if (server->settings.has_group) told = config_.links;
      // While no session tells, it stays as it was.
      if (!told) continue;
      for (std::size_t i = 1; i < server->links.size(); ++i) {
        server->links[i]->want(static_cast<std::int64_t>(i) < *told);
      }
    }
  }

  // Where a link can be replaced without a gap, and where it serves nobody, the new token is used at
  // once, so that a wrong one is noticed while the old link serves. Elsewhere the next session uses it.
  void take_new_token() {
    const auto token = authorization_.current();
    if (token == authorization_in_use_) return;
    authorization_in_use_ = token;
    log_.info("took over a new token");
    for (auto* link : links()) {
      const bool serves = link->not_serving_because().empty();
      if (link->session() != nullptr && (link->is_shared() || !serves)) link->replace();
    }
  }

  // Servers may tell of others that share their users.
  Task<> follow_the_told() {
    std::vector<Endpoint> told;
    for (auto* link : links()) {
      if (link->session() == nullptr) continue;
      for (const auto& text : link->session()->control().servers()) {
        auto endpoint = parse_endpoint(text, config_.server_port);
        if (endpoint && !contains(told, *endpoint)) told.push_back(*endpoint);
      }
    }
    for (const auto& endpoint : told) {
      const bool known = std::ranges::any_of(
          servers_, [&](const auto& server) { return server->endpoint == endpoint; });
      if (!known && servers_.size() < kMaxServers && !is_stopping_) {
        log_.info("another server was told of", {{"server", to_text(endpoint)}});
        add_server(endpoint, Server::Source::told);
      }
    }
    // One that nobody tells of any more is forgotten once it is gone.
    for (auto& server : servers_) {
      const bool is_gone =
          server->source == Server::Source::told && !contains(told, server->endpoint) &&
          std::ranges::all_of(server->links, [](const auto& link) { return link->is_done(); });
      if (!is_gone) continue;
      for (const auto& link : server->links) co_await link->end();
      server.reset();
    }
    std::erase(servers_, nullptr);
  }

  // -- sessions --

  [[nodiscard]] Session::Options session_options(Dialer& dialer) {
    Session::Options options{.connect_timeout = config_.connect_timeout,
                             .idle_timeout = config_.idle_timeout};
    auto& control = options.control;
    control.login = {.version = kWireVersion,
                     .os = "linux",
                     .arch = kArchitecture,
                     .pool_count = config_.pool_size};
    control.token = server_token_.current();
    if (config_.wire == Wire::v2) {
      control.opening = ClientOpening{.transport = to_string(config_.protocol),
                                      .tls = dialer.has_tls(),
                                      .tcp_mux = config_.tcp_mux};
    }
    control.retry = kRefusedProxy;
    control.ping_interval = kPingInterval;
    control.sign_pings = contains(config_.auth_scopes, "HeartBeats");
    control.sign_work = contains(config_.auth_scopes, "NewWorkConns");
    if (!config_.tcp_mux) {
      options.dial = [&dialer](Deadline deadline) { return dialer.connect(deadline); };
      control.pong_timeout = kPongTimeout;
    }
    const auto token = authorization_.current();
    const auto mark = kGroupMark + hex_encode(random_bytes(4));
    for (const auto& [host, upstream] : upstreams_) {
      NewProxy proxy{.proxy_name = host,
                     .proxy_type = "http",
                     .use_encryption = config_.use_encryption,
                     .use_compression = config_.use_compression,
                     .subdomain = host,
                     .locations = {host == config_.subdomain_prefix ? config_.location : "/"},
                     .ips_allow_list = config_.ips_allow_list};
      if (!config_.group_key.empty()) {
        proxy.proxy_name += mark;
        proxy.group = host;
        proxy.group_key = config_.group_key;
      }
      if (!token.empty()) proxy.metas.emplace("Authorization", token);
      control.proxies.push_back(std::move(proxy));
    }
    return options;
  }

  Task<Result<std::unique_ptr<net::Channel>>> connect_upstream(const std::string& name,
                                                               Deadline deadline) {
    const auto found = upstreams_.find(name.substr(0, name.find(kGroupMark)));
    if (found == upstreams_.end()) co_return fail(ErrorCode::not_found, "no proxy " + name);
    const auto& upstream = found->second;
    auto channel = co_await net::connect_host(names_, upstream.host, upstream.port, {}, deadline);
    if (!channel) co_return fail(to_text(upstream), std::move(channel.error()));
    co_return std::move(*channel);
  }

  const Config& config_;
  Executor executor_;
  Log log_{"tunnel-client"};
  Metrics& metrics_;
  Credential authorization_;
  Secret authorization_in_use_;
  Credential server_token_;
  Gauge& serving_;
  net::Resolver names_;
  http::ProxySettings proxy_;
  std::map<std::string, Endpoint> upstreams_;  // by host of the tunnel, without its domain
  Event changed_;                              // anything of any link
  bool is_stopping_ = false;
  std::vector<std::unique_ptr<Server>> servers_;
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
    frame.commands = {{"/links/replace", [app] { return app->replace_links(); }}};
    return frame;
  };
  return spec;
}

}  // namespace gitops::tunnel
