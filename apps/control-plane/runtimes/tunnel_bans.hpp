#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/store/database.hpp"
#include "control-plane/accounts/revocations.hpp"

namespace gitops::control_plane_server {

// Disconnects the tunnel of a runtime whose token was revoked: bans its host for a short time by the API of every tunnel
// server. After the ban the plugin's verdict refuses the client. The database holds the pending tunnels, so a ban is
// repeated until every server has taken it, also after a restart. Loop thread only; call stop() before the destruction.
class TunnelBans {
 public:
  struct Options {
    std::vector<http::Url> servers;  // URLs of the API: "http://tunnel-server:7500"
    Credential token;                // the credential of the API
    std::string domain;              // parent of the hosts
    // Duration of a ban. A runtime that registers again is refused for that time, too.
    std::chrono::milliseconds duration = std::chrono::seconds(10);
    std::chrono::milliseconds poll =
        std::chrono::seconds(5);  // of the database, for other processes' revocations
    net::TlsOptions tls = {};
  };
  // `names`, `database` and `metrics` outlive this object.
  TunnelBans(const Executor& executor, net::Resolver& names, store::Database& database,
             Metrics& metrics, Options options);
  ~TunnelBans();

  // Begins with the pending tunnels in the database, which is open.
  void start();
  // Reads the database again soon, after a revocation.
  void wake();
  Task<> stop();

  // Returns an entry with the number of pending tunnels and the last error of each server that refuses a ban.
  [[nodiscard]] StatusEntry status() const;

 private:
  struct Pending {
    std::string host;
    Micros since = 0;
    std::size_t servers_left = 0;
  };
  Task<> follow();
  void begin(const PendingTunnel& tunnel);
  Task<> ban_at(http::Url server, std::string id, std::string host);
  // Sends one request. Returns the error, or an empty text.
  Task<std::string> send_ban(const http::Url& server, const std::string& host);
  Task<> finish(const std::string& id);

  store::Database& database_;
  Options options_;
  http::Client client_;
  Log log_{"tunnels"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Event woken_;
  bool is_woken_ = false;
  std::map<std::string, Pending> pending_;     // by id of the revocation
  std::set<std::string> finished_;             // ids, since the rows were read last
  std::map<std::string, std::string> errors_;  // by server
  Counter& done_;
  Counter& failed_;
  Gauge& pending_count_;
  TaskGroup tasks_;
};

}  // namespace gitops::control_plane_server
