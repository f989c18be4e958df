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

// The way of requests to one host through one session of a client.
struct SessionWay {
  SessionId session = 0;
  std::string proxy;  // its name
  std::shared_ptr<proxy::Upstream> upstream;
  std::shared_ptr<const proxy::Route> route;
  bool serves = false;       // is of the newest client
  unsigned generation = 0;   // connections of another one are not used again
  std::size_t requests = 0;  // at the moment
  std::uint64_t turn = 0;    // when it was chosen last
  // The connection that was made just now goes through another session, and is not to be kept.
  bool is_borrowed = false;
};

// The way of requests to one host: through the sessions that offer it.
struct Way {
  std::shared_ptr<const Offer> offer;                 // of the newest entry
  std::vector<std::shared_ptr<SessionWay>> sessions;  // newest first
  std::size_t requests = 0;                           // at the moment
  std::uint64_t turns = 0;                            // of the sessions
};

// Where users connect: decides to which client a request goes, and what those hear that go to none. The
// sessions of the newest client take turns: the next request goes to the one with the fewest. One that
// may be dead is asked for a sign of life before it gets another user. Loop thread only.
class VhostProxy {
 public:
  struct Options {
    net::AddressList trusted_proxies;  // may say for whom they speak
    // Requests and upgraded connections of one host at a time; 0: any number.
    std::size_t max_requests_per_host = 1024;
    std::chrono::milliseconds connect_timeout{10'000};  // to wait for a work connection
    proxy::RouteLimits limits = {};
    std::function<std::shared_ptr<Session>(SessionId)> session;
    std::function<std::string(const std::string& domain)> ban;  // why, or empty
  };
  // The table and the traffic outlive it.
  VhostProxy(HostTable& table, Traffic& traffic, Options options);

  // For proxy::Server.
  [[nodiscard]] proxy::Policy policy();
  // Closes pooled connections that have been idle for too long.
  void sweep();
  // Closes all pooled connections, and keeps none that is in use now.
  void release_clients();
  // The entries of a host have changed.
  void update(HostTable::Host& host);

 private:
  proxy::Decision decide(const proxy::RequestHead& head, const proxy::PeerInfo& peer);
  [[nodiscard]] http::Response failed(const proxy::RequestHead* head, proxy::Failure failure,
                                      int status, std::string_view detail) const;
  [[nodiscard]] asio::ip::address client_of(const proxy::RequestHead& head,
                                            const proxy::PeerInfo& peer) const;
  struct Choice {
    std::shared_ptr<SessionWay> way;
    std::shared_ptr<Session> session;
    bool has_others = false;
  };
  // The best session that is none of `tried`: `wanted`, if it takes users. Empty when there is none.
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
