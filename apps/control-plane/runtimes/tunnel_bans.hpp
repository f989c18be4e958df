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

// Takes a host away from the client that serves it, when its token is revoked: a short ban by the API of every tunnel
// server. From then on the plugin's verdict keeps the client out. Best effort: a server that cannot be reached is tried
// again until the ban would be over. Loop thread only; stop() before the end.
class TunnelBans {
 public:
  struct Options {
    std::vector<http::Url> servers;  // of the API: "http://tunnel-server:7500"
    Credential token;                // that the API asks for
    std::string domain;              // below which the hosts lie
    // A runtime that registers again is kept out for that long.
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
