#include "control-plane/runtimes/tunnel_bans.hpp"

#include <utility>

#include <nlohmann/json.hpp>
#include <prometheus/counter.h>

#include "common/core/backoff.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxBanResponse = 64 * 1024;
constexpr std::chrono::seconds kBanTimeout{5};

Counter& bans(Metrics& metrics, const char* result) {
  return metrics.counter("gitops_control_plane_tunnel_bans_total",
                         "Hosts of revoked tokens that were banned at a tunnel server",
                         {{"result", result}});
}

}  // namespace

TunnelBans::TunnelBans(const Executor& executor, net::Resolver& names, Metrics& metrics,
                       Options options)
    : options_(std::move(options)),
      client_(executor, names, {.tls = options_.tls}),
      done_(bans(metrics, "done")),
      failed_(bans(metrics, "failed")),
      tasks_(executor) {}

TunnelBans::~TunnelBans() = default;

void TunnelBans::ban(const std::string& subdomain) {
  for (const auto& server : options_.servers) {
    tasks_.spawn("tunnel ban", [this, server, host = subdomain + "." + options_.domain] {
      return ban_at(server, host);
    });
  }
}

Task<> TunnelBans::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  client_.close_idle();
}

Task<> TunnelBans::ban_at(http::Url server, std::string host) {
  Backoff backoff({.initial = std::chrono::milliseconds(500), .max = std::chrono::seconds(10)},
                  random_seed());
  const auto give_up = deadline_after(options_.give_up);
  std::string error;
  while (Clock::now() < give_up) {
    const auto token = options_.token.current();
    http::Request request{.method = "PUT",
                          .target = http::join_target(server, "/v1/bans/" + percent_encode(host))};
    request.headers.add("Authorization", "Bearer " + std::string(token.reveal()));
    request.headers.add("Content-Type", "application/json");
    request.body = to_text({{"until", format_rfc3339(wall_now() + options_.duration)},
                            {"reason", "the token of the runtime was revoked"}});
    const auto response = co_await client_.send(server, std::move(request),
                                                deadline_after(kBanTimeout), kMaxBanResponse);
    if (response && response->status / 100 == 2) {
      done_.Increment();
      log_.info("a tunnel was taken away", {{"host", host}, {"server", server.to_string()}});
      co_return;
    }
    error = response ? "status " + std::to_string(response->status) : response.error().message;
    co_await sleep_for(backoff.next());
  }
  failed_.Increment();
  log_.error("a tunnel could not be taken away; it ends with its next login",
             {{"host", host}, {"server", server.to_string()}, {"error", error}});
}

}  // namespace gitops::control_plane_server
