#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"

namespace gitops::control_plane_server {

// Disconnects the client of a host when its token is revoked: bans the host for a short time by the API of every tunnel
// server. After the ban the plugin's verdict refuses the client. Best effort: an unreachable server is retried until
// the ban would be over. Loop thread only; call stop() before the destruction.
class TunnelBans {
 public:
  struct Options {
    std::vector<http::Url> servers;  // URLs of the API: "http://tunnel-server:7500"
    Credential token;                // the credential of the API
    std::string domain;              // parent of the hosts
    // Duration of a ban. A runtime that registers again is refused for that time, too.
    std::chrono::milliseconds duration = std::chrono::seconds(10);
    std::chrono::milliseconds give_up = std::chrono::minutes(5);
    net::TlsOptions tls = {};
  };
  // `names` and `metrics` outlive this object.
  TunnelBans(const Executor& executor, net::Resolver& names, Metrics& metrics, Options options);
  ~TunnelBans();

  // Begins to ban `<subdomain>.<domain>` at all servers.
  void ban(const std::string& subdomain);
  Task<> stop();

 private:
  Task<> ban_at(http::Url server, std::string host);

  Options options_;
  http::Client client_;
  Log log_{"tunnels"};
  Counter& done_;
  Counter& failed_;
  TaskGroup tasks_;
};

}  // namespace gitops::control_plane_server
