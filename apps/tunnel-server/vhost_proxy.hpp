#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/core/metrics.hpp"
#include "common/net/address_list.hpp"
#include "common/proxy/server.hpp"
#include "tunnel-server/host_table.hpp"
#include "tunnel-server/session.hpp"
#include "tunnel-server/traffic.hpp"

namespace gitops::tunnel_server {

// Route of requests to one host through one session of a client.
struct SessionWay {
  SessionId session = 0;
  std::string proxy;  // its name
  std::shared_ptr<proxy::Upstream> upstream;
  std::shared_ptr<const proxy::Route> route;
  bool serves = false;       // belongs to the newest client
  unsigned generation = 0;   // connections of other generations are not reused
  std::size_t requests = 0;  // in flight
  std::uint64_t turn = 0;    // turn in which it was last chosen
  // The connection just made goes through another session and must not be pooled.
  bool is_borrowed = false;
};

// Route of requests to one host through the sessions that offer it.
struct Way {
  std::shared_ptr<const Offer> offer;                 // of the newest entry
  std::vector<std::shared_ptr<SessionWay>> sessions;  // newest first
  std::size_t requests = 0;                           // in flight
  std::uint64_t turns = 0;                            // counter for SessionWay::turn
};

// Proxy for users: chooses the client for each request, and responds to requests that have none.
// Among the sessions of the newest client it chooses the one with the fewest requests; equal ones
// take turns. A session that may be dead is probed before it gets another user. Loop thread only.
class VhostProxy {
 public:
  struct Options {
    net::AddressList trusted_proxies;  // may name their clients in header fields
    // Limit of requests and upgraded connections of one host at a time; 0: no limit.
    std::size_t max_requests_per_host = 1024;
    std::chrono::milliseconds connect_timeout{10'000};  // for a work connection
    proxy::RouteLimits limits = {};
    std::function<std::shared_ptr<Session>(SessionId)> session;
    std::function<std::string(const std::string& domain)> ban;  // reason, or empty
  };
  // The table and the traffic must outlive the proxy.
  VhostProxy(HostTable& table, Traffic& traffic, Options options);

  // The policy for proxy::Server.
  [[nodiscard]] proxy::Policy policy();
  // Closes pooled connections that have exceeded their idle timeout.
  void sweep();
  // Closes all pooled connections and pools none of those in use.
  void release_clients();
  // Updates the routes after the entries of a host have changed.
  void update(HostTable::Host& host);

 private:
  proxy::Decision decide(const http::RequestHead& head, const proxy::PeerInfo& peer);
  [[nodiscard]] http::Response failed(const http::RequestHead* head, proxy::Failure failure,
                                      int status, std::string_view detail) const;
  [[nodiscard]] asio::ip::address client_of(const http::RequestHead& head,
                                            const proxy::PeerInfo& peer) const;
  struct Choice {
    std::shared_ptr<SessionWay> way;
    std::shared_ptr<Session> session;
    bool has_others = false;
  };
  // Returns the best session that is not in `tried`: `wanted`, if it accepts users. Empty if there
  // is none.
  [[nodiscard]] Choice choose(const Way& way, const std::vector<SessionId>& tried,
                              const SessionWay* wanted) const;
  std::shared_ptr<SessionWay> make_way(const std::shared_ptr<Way>& of_host, SessionId session,
                                       std::string proxy);
  Task<Result<std::unique_ptr<net::Channel>>> dial(std::weak_ptr<Way> way,
                                                   std::weak_ptr<SessionWay> first,
                                                   Deadline deadline);

  HostTable& table_;
  Traffic& traffic_;
  Options options_;
  std::vector<std::weak_ptr<Way>> ways_;
};

}  // namespace gitops::tunnel_server
