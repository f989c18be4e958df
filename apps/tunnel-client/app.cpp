#include "tunnel-client/app.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <prometheus/gauge.h>

#include "common/core/backoff.hpp"
#include "common/core/credential.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/process.hpp"
#include "common/net/connector.hpp"
#include "tunnel-client/config.hpp"
#include "tunnel-client/dialer.hpp"
#include "tunnel-client/link_keeper.hpp"

namespace gitops::tunnel_client {
namespace {

// Maximum number of servers at a time, including those that other servers announce.
constexpr std::size_t kMaxServers = 8;

// Backoff for a refused proxy. It is short: usually another pod of this runtime is about to drain.
constexpr Backoff::Options kRefusedProxy{.initial = std::chrono::seconds(2),
                                         .max = std::chrono::seconds(5)};

// Servers with a heartbeatTimeout need Pings. Without yamux, which has its own pings, they also
// detect a vanished server, after 14 s.
constexpr auto kPingInterval = std::chrono::seconds(9);
constexpr auto kPongTimeout = std::chrono::seconds(14);

// Version for the server. frp's servers before 0.52 refuse a version below 0.18.0 or not of the
// form a.b.c.
constexpr const char* kWireVersion = "1.0.0";

// The architecture in Go's terms.
#ifdef __aarch64__
constexpr const char* kArchitecture = "arm64";
#else
constexpr const char* kArchitecture = "amd64";
#endif

// Interval of checks of the configuration file.
constexpr auto kSettingsLook = std::chrono::seconds(1);

// Minimum time between two passes over the servers.
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

// Separator in the name of a grouped proxy, after its host: names are unique on frp's server.
constexpr char kGroupMark = '.';

// Returns the state of a server: healthy if at least one link serves.
StatusState state_of_links(const std::vector<StatusEntry>& links) {
  const auto has = [&links](StatusState state) {
    return std::ranges::find(links, state, &StatusEntry::state) != links.end();
  };
  if (has(StatusState::ok) || has(StatusState::degraded)) return StatusState::ok;
  return has(StatusState::failed) ? StatusState::failed : StatusState::pending;
}

bool contains(const auto& list, const auto& item) {
  return std::ranges::find(list, item) != list.end();
}

// Owns and connects all parts. Members are in order of dependency: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config, http::ProxySettings proxy)
      : config_(config),
        executor_(context.executor),
        metrics_(context.metrics),
        read_again_(context.read_again),
        authorization_(credential(config.authorization, config.authorization_file)),
        server_token_(credential(config.server_token, config.server_token_file)),
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
    for (const auto& extra : config.extra_proxies) {
      upstreams_[config.subdomain_prefix + "-" + extra.name] = extra.upstream;
    }
  }

  Task<Result<void>> start() {
    authorization_in_use_ = authorization_.current();
    for (auto& endpoint : server_endpoints(config_)) {
      add_server(std::move(endpoint), Server::Source::configured);
    }
    log_.info("tunnel", {{"server", servers_.front()->settings.server},
                         {"servers", servers_.size()},
                         {"subdomain", config_.subdomain_prefix},
                         {"forward_to", to_text(upstreams_.at(config_.subdomain_prefix))},
                         {"insecure", config_.insecure}});
    tasks_.spawn("servers", [this] { return maintain_servers(); });
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

  [[nodiscard]] StatusReport status() const {
    StatusReport report{status_entry("state", not_ready_because(), "serving")};
    bool has_failed = false;
    for (const auto& server : servers_) {
      StatusEntry entry{.name = "server " + server->settings.server};
      if (server->source == Server::Source::announced) entry.message = "another server told of it";
      for (const auto& link : server->links) entry.add_detail(link->status());
      entry.state = state_of_links(entry.details);
      has_failed = has_failed || entry.state == StatusState::failed;
      report.push_back(std::move(entry));
    }
    if (report[0].state == StatusState::failed && !has_failed) {
      report[0].state = StatusState::pending;
    }
    return report;
  }

  // Handler of a command on the admin port.
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
      announced,  // by another server
      left,       // neither any more
    };
    Endpoint endpoint;
    Source source;
    std::string label;               // for metrics
    std::shared_ptr<Dialer> dialer;  // replaced when the settings change
    LinkSettings settings = {};
    std::vector<std::unique_ptr<LinkKeeper>> links = {};
    std::int64_t more_links = 0;  // in addition to the configured ones, when those are nearly full
  };

  static Credential credential(const Secret& value, const std::string& file) {
    return file.empty() ? Credential::fixed(value) : Credential::file(file);
  }

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
    auto dialer = make_dialer(endpoint);
    // Announced servers share one label, which bounds the number of labels.
    const auto label = source == Server::Source::announced ? "told" : dialer->server();
    auto server = std::make_unique<Server>(std::move(endpoint), source, label, std::move(dialer));
    auto* raw = server.get();
    server->settings = {
        .server = server->dialer->server(),
        .dial = [raw](Deadline deadline) { return dial(raw->dialer, deadline); },
        .connect = [this](const std::string& name,
                          Deadline deadline) { return connect_upstream(name, deadline); },
        .session = [this, raw] { return session_options(raw->dialer); },
        .has_group = !config_.group_key.empty()};
    add_links(*server);
    server->links.front()->want(true);
    servers_.push_back(std::move(server));
  }

  std::shared_ptr<Dialer> make_dialer(const Endpoint& endpoint) {
    return std::make_shared<Dialer>(executor_, names_, config_, endpoint, proxy_);
  }

  // Holds the dialer, which may be replaced during the call.
  static Task<Result<std::unique_ptr<net::Channel>>> dial(std::shared_ptr<Dialer> dialer,
                                                          Deadline deadline) {
    co_return co_await dialer->connect(deadline);
  }

  // Adds links up to the configured number. Links that are stopping do not count.
  void add_links(Server& server) {
    for (int number = 1; number <= config_.links + server.more_links; ++number) {
      const bool is_there = std::ranges::any_of(server.links, [number](const auto& link) {
        return link->number() == number && !link->is_stopping();
      });
      if (is_there) continue;
      const Metrics::Labels labels{{"server", server.label}, {"link", std::to_string(number)}};
      server.links.push_back(std::make_unique<LinkKeeper>(
          executor_, server.settings, number, Traffic(metrics_, labels), changed_, random_seed()));
      server.links.back()->start();
    }
  }

  Task<> maintain_servers() {
    while (true) {
      take_new_settings();
      want_links();
      take_new_token();
      follow_announced();
      co_await drop_the_left();
      for (const auto& server : servers_) {
        for (const auto& link : server->links) link->count();
      }
      serving_.Set(not_ready_because().empty() ? 1 : 0);
      co_await changed_.wait(deadline_after(std::chrono::seconds(1)));
      // Limits the rate of passes: every connection of a user sets `changed_`, and this loop
      // ignores those.
      co_await sleep_for(kBetweenLooks);
    }
  }

  // Returns whether all wanted links, including those that are connecting, are nearly full.
  static bool needs_another_link(const Server& server) {
    return std::ranges::all_of(server.links, [](const auto& link) {
      if (!link->is_wanted()) return true;
      return link->session() != nullptr && link->session()->is_nearly_full();
    });
  }

  // Adjusts the number of links of each server: the configured number, more while those are nearly
  // full, never more than the server allows.
  void want_links() {
    for (const auto& server : servers_) {
      std::optional<std::int64_t> wanted;
      std::int64_t most = 1;
      for (const auto& link : server->links) {
        const auto* session = link->session();
        if (session != nullptr && session->control().is_logged_in()) {
          wanted = std::max(wanted.value_or(1), session->control().links());
          most = std::max(most, session->control().max_links());
        }
      }
      if (server->settings.has_group) wanted = config_.links;
      // Keeps the number while no session is logged in.
      if (!wanted) continue;
      const auto kept = std::min(*wanted, config_.links);
      if (kept + server->more_links < most && needs_another_link(*server)) {
        ++server->more_links;
        log_.info("the links to the server are nearly full; there is another one now",
                  {{"server", server->settings.server}, {"links", kept + server->more_links}});
        add_links(*server);
      }
      for (const auto& link : server->links) {
        if (link->number() > 1) link->want(link->number() <= kept + server->more_links);
      }
    }
  }

  // Uses a new token immediately where a link can be replaced without a gap or serves nobody, so
  // that a wrong token is noticed while the old link serves. Elsewhere the next session uses it.
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

  // Adds the servers that connected servers announce as sharing their users.
  void follow_announced() {
    std::vector<Endpoint> announced;
    for (auto* link : links()) {
      if (link->session() == nullptr) continue;
      for (const auto& text : link->session()->control().servers()) {
        auto endpoint = parse_endpoint(text, config_.server_port);
        if (endpoint && !contains(announced, *endpoint)) announced.push_back(*endpoint);
      }
    }
    for (const auto& endpoint : announced) {
      const bool known = std::ranges::any_of(
          servers_, [&](const auto& server) { return server->endpoint == endpoint; });
      if (!known && servers_.size() < kMaxServers && !is_stopping_) {
        log_.info("another server was told of", {{"server", to_text(endpoint)}});
        add_server(endpoint, Server::Source::announced);
      }
    }
    // Marks servers that are not announced any more, once their links are done.
    for (const auto& server : servers_) {
      if (server->source == Server::Source::announced && !contains(announced, server->endpoint) &&
          std::ranges::all_of(server->links, is_done)) {
        server->source = Server::Source::left;
      }
    }
  }

  static bool is_done(const std::unique_ptr<LinkKeeper>& link) { return link->is_done(); }

  // Removes links and servers that are done. Each leaves its list before its end is awaited, since
  // other tasks read the lists meanwhile.
  Task<> drop_the_left() {
    for (std::size_t i = 0; i < servers_.size();) {
      auto& server = *servers_[i];
      const auto done = std::ranges::find_if(
          server.links, [](const auto& link) { return link->is_stopping() && link->is_done(); });
      if (done != server.links.end() && !is_stopping_) {
        const auto gone = std::move(*done);
        server.links.erase(done);
        co_await gone->end();
      } else if (server.source == Server::Source::left &&
                 std::ranges::all_of(server.links, is_done)) {
        const auto gone = std::move(servers_[i]);
        servers_.erase(servers_.begin() + static_cast<std::ptrdiff_t>(i));
        for (const auto& link : gone->links) co_await link->end();
      } else {
        ++i;
      }
    }
  }

  // -- the settings --

  // Reloads the configuration file when it has changed. Applies the settings that need no restart;
  // a file with mistakes changes nothing.
  void take_new_settings() {
    if (!read_again_ || is_stopping_ || Clock::now() < next_look_) return;
    next_look_ = Clock::now() + kSettingsLook;
    Config next;
    const auto mistakes = read_again_([&next](ConfigReader& reader) { bind(reader, next); });
    if (!mistakes) return;  // unchanged file
    if (!mistakes->empty()) {
      for (const auto& mistake : *mistakes) {
        log_.error("the settings have mistakes; those in force stay", {{"error", mistake}});
      }
      return;
    }
    if (next == config_) return;
    for (const auto& name : need_restart(config_, next)) {
      log_.warning("a changed setting needs a restart", {{"setting", name}});
    }
    const bool changes_servers =
        next.servers != config_.servers || next.server_port != config_.server_port;
    const bool changes_dialers = next.ca_file != config_.ca_file;
    const bool changes_sessions = next.pool_size != config_.pool_size;
    if (next.authorization_file != config_.authorization_file) {
      authorization_ = credential(next.authorization, next.authorization_file);
    }
    if (next.server_token_file != config_.server_token_file) {
      server_token_ = credential(next.server_token, next.server_token_file);
    }
    const auto links_before = config_.links;
    take_over(config_, next);
    if (changes_servers) take_new_servers();
    for (const auto& server : servers_) {
      if (changes_dialers) server->dialer = make_dialer(server->endpoint);
      for (const auto& link : server->links) {
        if (link->number() > config_.links) link->stop();
      }
      if (config_.links > links_before && server->source != Server::Source::left) {
        add_links(*server);
      }
    }
    // Replaces links that need no gap. On the others the next session has the new pool size.
    for (auto* link : links()) {
      if (changes_sessions && link->session() != nullptr && link->is_shared()) link->replace();
    }
    log_.info(
        "took over new settings",
        {{"servers", servers_.size()}, {"links", config_.links}, {"pool_size", config_.pool_size}});
  }

  // Drains links to servers that are no longer configured.
  void take_new_servers() {
    const auto wanted = server_endpoints(config_);
    for (const auto& endpoint : wanted) {
      const auto known = std::ranges::find_if(servers_, [&](const auto& server) {
        return server->endpoint == endpoint && server->source != Server::Source::left;
      });
      if (known == servers_.end()) {
        add_server(endpoint, Server::Source::configured);
      } else {
        (*known)->source = Server::Source::configured;
      }
    }
    for (const auto& server : servers_) {
      if (server->source != Server::Source::configured || contains(wanted, server->endpoint)) {
        continue;
      }
      server->source = Server::Source::left;
      for (const auto& link : server->links) link->stop();
    }
  }

  // -- sessions --

  [[nodiscard]] Session::Options session_options(const std::shared_ptr<Dialer>& dialer) {
    Session::Options options{.connect_timeout = config_.connect_timeout};
    auto& control = options.control;
    control.login = {.version = kWireVersion,
                     .os = "linux",
                     .arch = kArchitecture,
                     .metas = {{tunnel::kInstanceMeta, instance_}},
                     .pool_count = config_.pool_size};
    control.token = server_token_.current();
    if (config_.wire == tunnel::Wire::v2) {
      control.opening = tunnel::ClientOpening{.transport = to_string(config_.protocol),
                                              .tls = dialer->has_tls(),
                                              .tcp_mux = config_.tcp_mux};
    }
    control.retry = kRefusedProxy;
    control.ping_interval = kPingInterval;
    control.sign_pings = config_.auth_scopes.heart_beats;
    control.sign_work = config_.auth_scopes.new_work_conns;
    if (!config_.tcp_mux) {
      options.dial = [dialer](Deadline deadline) { return dial(dialer, deadline); };
      control.pong_timeout = kPongTimeout;
    }
    const auto token = authorization_.current();
    const auto mark = kGroupMark + hex_encode(random_bytes(4));
    for (const auto& [host, upstream] : upstreams_) {
      tunnel::NewProxy proxy{
          .proxy_name = host,
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

  Config config_;
  Executor executor_;
  Log log_{"tunnel-client"};
  Metrics& metrics_;
  decltype(DaemonContext::read_again) read_again_;
  Clock::time_point next_look_{};
  Credential authorization_;
  Secret authorization_in_use_;
  const Secret instance_{hex_encode(random_bytes(8))};
  Credential server_token_;
  Gauge& serving_;
  net::Resolver names_;
  http::ProxySettings proxy_;
  std::map<std::string, Endpoint> upstreams_;  // by host of the tunnel, without its domain
  Event changed_;                              // set on any change of any link
  bool is_stopping_ = false;
  std::vector<std::unique_ptr<Server>> servers_;
  TaskGroup tasks_;
};

}  // namespace

DaemonSpec tunnel_client() {
  return daemon_spec<Config>(
      "tunnel-client",
      "Opens a tunnel outwards, through which a runtime without an ingress is reached.",
      [](const DaemonContext& context, std::shared_ptr<Config> config) {
        const auto app =
            std::make_shared<App>(context, *config, http::proxy_settings(context.environment));
        auto frame = daemon_app(app, std::move(config));
        frame.ready_checks = {{"tunnel", [app] { return app->not_ready_because(); }}};
        frame.commands = {
            {"/links/replace", [app](std::string_view) { return app->replace_links(); }}};
        return frame;
      });
}

}  // namespace gitops::tunnel_client
