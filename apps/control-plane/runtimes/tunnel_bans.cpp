#include "control-plane/runtimes/tunnel_bans.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/core/backoff.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/runtimes/tunnel_plugin.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxBanResponse = 64 * 1024;
constexpr std::size_t kMaxPendingTunnels = 1'000;  // of one read
constexpr std::chrono::seconds kBanTimeout{5};
constexpr std::chrono::seconds kBanDatabaseLimit{10};
constexpr Backoff::Options kBanBackoff{.initial = std::chrono::milliseconds(500),
                                       .max = std::chrono::seconds(10)};

Counter& ban_requests(Metrics& metrics, const char* result) {
  return metrics.counter("gitops_control_plane_tunnel_bans_total",
                         "Requests to ban the host of a revoked token, by result",
                         {{"result", result}});
}

}  // namespace

TunnelBans::TunnelBans(const Executor& executor, net::Resolver& names, store::Database& database,
                       Metrics& metrics, Options options)
    : database_(database),
      options_(std::move(options)),
      client_(executor, names, {.tls = options_.tls}),
      woken_(executor),
      done_(ban_requests(metrics, "done")),
      failed_(ban_requests(metrics, "failed")),
      pending_count_(
          metrics.gauge("gitops_control_plane_tunnel_bans_pending",
                        "Tunnels of revoked tokens that a tunnel server may still have")),
      tasks_(executor) {}

TunnelBans::~TunnelBans() = default;

void TunnelBans::start() {
  tasks_.spawn("tunnel bans", [this] { return follow(); });
}

void TunnelBans::wake() {
  is_woken_ = true;
  woken_.notify_all();
}

Task<> TunnelBans::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  client_.close_idle();
}

StatusEntry TunnelBans::status() const {
  StatusEntry entry{.name = "tunnel bans", .message = "every revoked tunnel is disconnected"};
  if (!pending_.empty()) {
    entry.state = errors_.empty() ? StatusState::pending : StatusState::degraded;
    entry.message = errors_.empty()
                        ? "revoked tunnels are being disconnected"
                        : "a tunnel server does not take a ban; its client may still serve";
    const auto oldest =
        std::ranges::min_element(pending_, {}, [](const auto& item) { return item.second.since; });
    entry.since = WallTime(std::chrono::milliseconds(oldest->second.since / 1'000));
  }
  entry.add_count("pending", pending_.size());
  for (const auto& [server, error] : errors_) {
    entry.add_detail({.name = server, .state = StatusState::failed, .message = error});
  }
  return entry;
}

Task<> TunnelBans::follow() {
  while (true) {
    is_woken_ = false;
    finished_.clear();
    const auto pending = co_await database_.read(
        deadline_after(kBanDatabaseLimit),
        [](store::Connection& connection) { return pending_tunnels(connection); });
    if (pending) {
      // A pending one that is not in a whole list was finished by another replica, or it has expired.
      if (pending->size() < kMaxPendingTunnels) {
        std::erase_if(pending_, [&](const auto& item) {
          return std::ranges::find(*pending, item.first, &PendingTunnel::id) == pending->end();
        });
        pending_count_.Set(static_cast<double>(pending_.size()));
      }
      for (const auto& tunnel : *pending) begin(tunnel);
    } else if (repeated_.check("read", Clock::now()).pass) {
      log_.warning("the revoked tunnels cannot be read", {{"error", pending.error().message}});
    }
    if (!is_woken_) co_await woken_.wait(deadline_after(options_.poll));
  }
}

void TunnelBans::begin(const PendingTunnel& tunnel) {
  // A row that was read before its removal was committed is none any more.
  if (pending_.contains(tunnel.id) || finished_.contains(tunnel.id)) return;
  const auto host = tunnel_subdomain(tunnel.account, tunnel.runtime) + "." + options_.domain;
  pending_.emplace(
      tunnel.id,
      Pending{.host = host, .since = tunnel.since, .servers_left = options_.servers.size()});
  pending_count_.Set(static_cast<double>(pending_.size()));
  for (const auto& server : options_.servers) {
    tasks_.spawn("tunnel ban",
                 [this, server, id = tunnel.id, host] { return ban_at(server, id, host); });
  }
}

Task<> TunnelBans::ban_at(http::Url server, std::string id, std::string host) {
  Backoff backoff(kBanBackoff, random_seed());
  const auto name = server.to_string();
  while (true) {
    auto error = co_await send_ban(server, host);
    if (error.empty()) break;
    failed_.Increment();
    if (repeated_.check(name, Clock::now()).pass) {
      log_.warning("a tunnel server did not take a ban; it is repeated",
                   {{"host", host}, {"server", name}, {"error", error}});
    }
    errors_.insert_or_assign(name, std::move(error));
    co_await sleep_for(backoff.next());
    if (!pending_.contains(id)) {
      errors_.erase(name);
      co_return;
    }
  }
  errors_.erase(name);
  done_.Increment();
  log_.info("the tunnel of a revoked token was disconnected", {{"host", host}, {"server", name}});
  const auto found = pending_.find(id);
  if (found != pending_.end() && --found->second.servers_left == 0) co_await finish(id);
}

Task<std::string> TunnelBans::send_ban(const http::Url& server, const std::string& host) {
  const auto token = options_.token.current();
  http::Request request{.method = "PUT",
                        .target = http::join_target(server, "/v1/bans/" + percent_encode(host))};
  request.headers.add("Authorization", "Bearer " + std::string(token.reveal()));
  request.headers.add("Content-Type", "application/json");
  request.body = to_text({{"until", format_rfc3339(wall_now() + options_.duration)},
                          {"reason", "the token of the runtime was revoked"}});
  const auto response = co_await client_.send(server, std::move(request),
                                              deadline_after(kBanTimeout), kMaxBanResponse);
  if (!response) co_return response.error().message;
  if (response->status / 100 == 2) co_return std::string();
  co_return "status " + std::to_string(response->status);
}

// Removes the tunnel from the database and then from memory, so that it is not read as a new one in between.
Task<> TunnelBans::finish(const std::string& id) {
  Backoff backoff(kBanBackoff, random_seed());
  while (true) {
    const auto finished = co_await database_.write(
        deadline_after(kBanDatabaseLimit), [id](store::Connection& connection) -> Result<void> {
          return finish_tunnel(connection, id);
        });
    if (finished) break;
    if (repeated_.check("finish", Clock::now()).pass) {
      log_.warning("a disconnected tunnel was not recorded", {{"error", finished.error().message}});
    }
    co_await sleep_for(backoff.next());
  }
  finished_.insert(id);
  pending_.erase(id);
  pending_count_.Set(static_cast<double>(pending_.size()));
}

}  // namespace gitops::control_plane_server
