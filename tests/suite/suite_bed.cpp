#include "suite/suite_bed.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "common/http/url.hpp"
#include "support/run_on.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using std::chrono::seconds;

constexpr auto kStartLimit = seconds(60);
constexpr std::uint64_t kFileLimit = 4096;
constexpr std::size_t kMaxLog = 15'000;

std::string on_localhost(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

std::uint16_t port_of(const std::string& url) {
  return http::parse_url(url).value().port;
}

std::string end_of(const std::string& log) {
  return log.substr(log.size() - std::min(log.size(), kMaxLog));
}

Environment without_proxies(Environment environment) {
  for (const char* name : {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"}) {
    environment[name] = std::nullopt;
  }
  return environment;
}

}  // namespace

SuiteBed::SuiteBed(const Executor& executor, demo::World& world, GitServer& git, Network network)
    : world_(world), git_(git), executor_(executor), network_(network) {
  // A limit on the file size plays a full disk; without SIGXFSZ a write beyond it is an error.
  std::signal(SIGXFSZ, SIG_IGN);
}

void SuiteBed::link(const std::string& from, const std::string& to, std::uint16_t port,
                    bool is_tls) {
  SuiteLink link{.from = from, .to = to, .port = port, .relay = nullptr, .is_tls = is_tls};
  if (network_ == Network::relays) {
    link.relay = &relays_.emplace_back(executor_, "127.0.0.1", port);
    link.port = link.relay->port();
  }
  links_.push_back(std::move(link));
}

std::uint16_t SuiteBed::port(std::string_view from, std::string_view to) const {
  for (const auto& link : links_) {
    if (link.from == from && link.to == to) return link.port;
  }
  throw std::logic_error("no link from " + std::string(from) + " to " + std::string(to));
}

std::string SuiteBed::kubeconfig_through(std::uint16_t port) const {
  auto text = read_file(world_.kubeconfig);
  const auto& url = world_.kubernetes_url;
  text.replace(text.find(url), url.size(),
               url.substr(0, url.rfind(':') + 1) + std::to_string(port));
  return text;
}

Task<> SuiteBed::start() {
  plane_.emplace(executor_, pool_, std::string());
  co_await plane_->start();
  const auto plane_port = plane_->program().port();
  const auto kubernetes_port = port_of(world_.kubernetes_url);
  const bool is_kubernetes_tls = world_.kubernetes_url.starts_with("https");
  link("page", part::kPlane, plane_port);
  link(part::kAppProxy, part::kPlane, plane_port);
  link(part::kTunnelServer, part::kPlane, plane_port);
  link(part::kAppProxy, "kubernetes", kubernetes_port, is_kubernetes_tls);
  link(part::kAppProxy, "argocd", port_of(world_.argocd_url));
  link(part::kRouter, part::kAppProxy, app_proxy_port_);
  link(part::kTunnelClient, part::kRouter, router_port_);
  write_file(folder_ / "kubeconfig", kubeconfig_through(port(part::kAppProxy, "kubernetes")));
  start_router();
  start_app_proxy();
  co_await wait_for_registration();

  if (network_ == Network::relays) make_reporter();
  auto plugin = plane_->tunnel_plugin();
  plugin.replace(0, plane_->url().size(), on_localhost(port(part::kTunnelServer, part::kPlane)));
  tunnel_server_.emplace(authority_, std::vector{"--plugin.url=" + plugin});
  link(part::kTunnelClient, part::kTunnelServer, tunnel_server_->tunnel_port, true);
  link("user", part::kTunnelServer, tunnel_server_->port, true);
  prefix_ = plane_->account_id() + "-" + kRuntime;
  host_ = prefix_ + ".example.test";
  start_tunnel_client();
}

void SuiteBed::make_reporter() {
  const auto kubernetes_port = port_of(world_.kubernetes_url);
  const bool is_kubernetes_tls = world_.kubernetes_url.starts_with("https");
  reporter_.emplace(executor_, 0,
                    ReporterPod::Peers{.kubeconfig = read_file(world_.kubeconfig),
                                       .kubernetes_url = world_.kubernetes_url,
                                       .ports = {kubernetes_port, port_of(world_.argocd_url),
                                                 plane_->program().port()}},
                    without_proxies({{"POD_NAMESPACE", world_.app_namespace},
                                     {"ARGO_CD_TOKEN_SECRET_NAME", std::nullopt},
                                     {"ARGOCD_TOKEN", world_.argocd_token}}));
  reporter_->report_to(on_localhost(reporter_->relay(Peer::platform).port()), token_);
  for (const auto& [peer, name, is_tls] :
       {std::tuple(Peer::kubernetes, "kubernetes", is_kubernetes_tls),
        std::tuple(Peer::second, "argocd", false),
        std::tuple(Peer::platform, part::kPlane, false)}) {
    auto& relay = reporter_->relay(peer);
    links_.push_back({.from = part::kReporter,
                      .to = name,
                      .port = relay.port(),
                      .relay = &relay,
                      .is_tls = is_tls});
  }
}

void SuiteBed::start_app_proxy() {
  app_proxy_.emplace(
      without_proxies({{"PORT", std::to_string(app_proxy_port_)},
                       {"CF_HOST", on_localhost(port(part::kAppProxy, part::kPlane))},
                       {"USER_TOKEN", plane_->key()},
                       {"RUNTIME_TOKEN", ""},
                       {"RUNTIME_STORE_IV", "suite"},
                       {"RUNTIME_NAME", kRuntime},
                       {"LEADER_ID", "suite"},
                       {"INGRESS_HOST", on_localhost(router_port_)},
                       {"KUBECONFIG", (folder_ / "kubeconfig").string()},
                       {"NAMESPACE", world_.app_namespace},
                       {"ARGO_CD_URL", on_localhost(port(part::kAppProxy, "argocd"))},
                       {"ARGO_CD_TOKEN", world_.argocd_token},
                       {"GIT_INSECURE_HTTP", "true"}}));
}

void SuiteBed::start_router() {
  router_.emplace(
      std::vector{std::string(GITOPS_BIN_DIR) + "/request-router"},
      without_proxies({{"LISTEN_PORT", std::to_string(router_port_)},
                       {"APP_PROXY_URL", on_localhost(port(part::kRouter, part::kAppProxy))},
                       {"WEBHOOK_PORT", std::to_string(world_.event_source_port)},
                       {"UPSTREAM_ALLOWED_ADDRESSES", "127.0.0.1"},
                       {"TRUSTED_PROXIES", "127.0.0.1"},
                       {"POD_NAMESPACE", world_.app_namespace}}),
      "");
}

void SuiteBed::start_tunnel_client() {
  tunnel_client_.emplace(std::vector{port(part::kTunnelClient, part::kTunnelServer)}, ca_file(),
                         port(part::kTunnelClient, part::kRouter), std::vector<std::string>{},
                         TunnelRuntime{.prefix = prefix_, .token = token_});
}

Task<> SuiteBed::wait_for_registration() {
  const auto deadline = deadline_after(kStartLimit);
  while (token_.empty() || !app_proxy_->log().contains("the account is known")) {
    if (Clock::now() > deadline || !app_proxy_->process().running()) {
      throw std::runtime_error("the runtime does not register itself:\n" + app_proxy_->log());
    }
    co_await sleep_for(std::chrono::milliseconds(20));
    if (token_.empty()) token_ = co_await world_.secret("codefresh-token", "token");
  }
}

Process* SuiteBed::process(std::string_view name) {
  if (name == part::kPlane) {
    return plane_ && plane_->is_started() ? &plane_->program().process() : nullptr;
  }
  if (name == part::kAppProxy) return app_proxy_ ? &app_proxy_->process() : nullptr;
  if (name == part::kRouter) return router_ ? &router_->process() : nullptr;
  if (name == part::kTunnelServer) return tunnel_server_ ? &tunnel_server_->process() : nullptr;
  if (name == part::kTunnelClient) return tunnel_client_ ? &tunnel_client_->process() : nullptr;
  return reporter_ && reporter_->runs() ? &reporter_->process().process() : nullptr;
}

Task<> SuiteBed::terminate(std::string name) {
  if (name == part::kReporter) {
    if (reporter_) co_await reporter_->stop();
    co_return;
  }
  auto* process = this->process(name);
  if (process == nullptr || !process->running()) co_return;
  // Off the loop: a part that ends talks to others through the relays.
  EXPECT_EQ(co_await run_on(pool_, [process] { return process->stop(seconds(20)); }), 0) << name;
}

Task<> SuiteBed::stop() {
  for (const char* name : {part::kReporter, part::kTunnelClient, part::kTunnelServer,
                           part::kAppProxy, part::kRouter, part::kPlane}) {
    co_await terminate(name);
  }
  for (auto& relay : relays_) co_await relay.stop();
  if (!reporter_) co_return;
  for (const auto peer : kPeers) co_await reporter_->relay(peer).stop();
}

std::string SuiteBed::logs() {
  std::string out;
  const auto add = [&out](const char* name, const std::string& log) {
    out += std::string("the end of the log of ") + name + ":\n" + end_of(log) + "\n";
  };
  if (plane_) add(part::kPlane, plane_->log());
  if (app_proxy_) add(part::kAppProxy, app_proxy_->log());
  if (router_) add(part::kRouter, router_->log());
  if (tunnel_server_) add(part::kTunnelServer, tunnel_server_->log());
  if (tunnel_client_) add(part::kTunnelClient, tunnel_client_->log());
  if (reporter_ && reporter_->runs()) add(part::kReporter, reporter_->process().log());
  return out;
}

void SuiteBed::kill(std::string_view name) {
  if (name == part::kReporter) return reporter_->kill();
  if (name == part::kPlane) return plane_->kill();
  process(name)->kill();
}

Task<> SuiteBed::start_again(std::string_view name) {
  if (name == part::kReporter) {
    start_reporter();
  } else if (name == part::kPlane) {
    co_await plane_->start_again();
  } else if (name == part::kAppProxy) {
    start_app_proxy();
  } else if (name == part::kRouter) {
    start_router();
  } else if (name == part::kTunnelServer) {
    tunnel_server_->start();
  } else {
    start_tunnel_client();
  }
}

Task<std::string> SuiteBed::metrics(std::string name) {
  if (name == part::kReporter && (!reporter_->runs() || !co_await reporter_->process().started())) {
    co_return std::string();
  }
  co_return co_await run_on(pool_, [this, name] {
    const auto reply = name == part::kReporter       ? reporter_->process().get("/metrics")
                       : name == part::kPlane        ? plane_->program().admin("/metrics")
                       : name == part::kAppProxy     ? app_proxy_->admin("/metrics")
                       : name == part::kTunnelServer ? tunnel_server_->admin("/metrics")
                       : name == part::kTunnelClient
                           ? tunnel_client_->admin("/metrics")
                           : http_call({.url = on_localhost(router_->admin_port()) + "/metrics"});
    return reply.ok() ? reply.body : std::string();
  });
}

Task<bool> SuiteBed::are_all_ready() {
  if (!reporter_->runs() || !co_await reporter_->process().started()) co_return false;
  co_return co_await run_on(pool_, [this] {
    return reporter_->process().get("/readyz").ok() && tunnel_server_->serves(host_) &&
           tunnel_client_->is_ready();
  });
}

void SuiteBed::limit_plane_files(bool is_limited) {
  auto& process = plane_->program().process();
  if (!process.running()) return;
  rlimit limit{};
  ::prlimit(process.pid(), RLIMIT_FSIZE, nullptr, &limit);
  limit.rlim_cur = is_limited ? std::min<rlim_t>(kFileLimit, limit.rlim_max) : limit.rlim_max;
  ::prlimit(process.pid(), RLIMIT_FSIZE, &limit, nullptr);
}

Task<> SuiteBed::back_up_plane() {
  const auto path = plane_->program().database_path() + ".backup";
  std::filesystem::remove(path);
  co_await run_on(pool_, [this, path] { plane_->program().command({"backup", "--to=" + path}); });
}

Task<> SuiteBed::restore_plane() {
  plane_->kill();
  const auto path = plane_->program().database_path() + ".backup";
  co_await run_on(pool_,
                  [this, path] { plane_->program().command({"restore", "--from=" + path}); });
  co_await plane_->start_again();
}

http::Url SuiteBed::page_url() const {
  return {.scheme = "http", .host = "127.0.0.1", .port = port("page", part::kPlane)};
}

std::uint16_t SuiteBed::user_port() const {
  return port("user", part::kTunnelServer);
}

}  // namespace gitops::test
