#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/task_group.hpp"
#include "common/net/listener.hpp"
#include "common/proxy/limits.hpp"
#include "tunnel-server/authorizer.hpp"
#include "tunnel-server/host_table.hpp"
#include "tunnel-server/session.hpp"
#include "tunnel-server/transport_handshake.hpp"

namespace gitops::tunnel_server {

// The state of a client.
enum class ClientState : std::uint8_t { logging_in, without_host, standing_by, serving, leaving };
// "logging in", "without a host", "standing by", "serving", "leaving".
std::string_view to_string(ClientState state);
ClientState state_of(const Session& session, const std::vector<HostTable::Domain>& domains);

// The clients of the tunnel: accepts their connections, keeps their sessions, enters what they offer
// into the table of hosts, and manages their life. Loop thread only.
class ClientRegistry {
 public:
  struct Options {
    net::ListenOptions listen = {};
    TransportHandshake::Options handshake = {};
    Session::Options session = {};
    // Sessions of one client that it is told to have, where the authorizer confirms whose hosts are
    // whose; elsewhere a second one would be refused.
    std::int64_t links = 0;
    std::string subdomain_host;
    std::int64_t vhost_port = 80;                     // as clients are told it
    std::chrono::milliseconds login_timeout{10'000};  // from the connection to the login
    std::size_t max_clients = 10'000;
    // Connections that have not logged in.
    std::size_t max_unauthenticated = 2'000;
    std::size_t max_unauthenticated_per_address = 2'000;
  };
  // Authorizer and table outlive it.
  ClientRegistry(const Executor& executor, Authorizer& authorizer, HostTable& table,
                 Metrics& metrics, Options options);

  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Serves a connection that was made elsewhere, as if it had been accepted; closes it when there are
  // too many.
  void adopt(std::unique_ptr<net::Channel> channel, const asio::ip::address& address);
  // Stops accepting clients.
  void drain();
  // Has all clients go elsewhere as soon as nobody uses them here.
  void drain_sessions();
  // Ends all sessions.
  Task<> stop();

  // Ends clients whose hosts the list of runtimes does not allow them any more. Call it once a second.
  void check_again();

  // Null when there is none.
  [[nodiscard]] std::shared_ptr<Session> session(SessionId id) const;
  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const;
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }

  // A host that no client may offer, and that serves nobody, until a time.
  struct Ban {
    WallTime until{};
    std::string reason;
  };
  // Bans a domain; sessions that offer it are ended.
  void ban(const std::string& domain, Ban ban);
  bool unban(const std::string& domain);
  // Those that hold.
  [[nodiscard]] std::map<std::string, Ban> bans();
  // Why a domain is banned now; empty when it is not.
  [[nodiscard]] std::string ban_of(const std::string& domain);

 private:
  Task<> serve(SessionId id, std::shared_ptr<std::unique_ptr<net::Channel>> channel,
               std::string client);
  // A connection without yamux begins with its first message: a login, or a work connection of a
  // session that exists. Null when there is no session for it.
  Task<Result<std::shared_ptr<Session>>> begin_without_mux(SessionId id,
                                                           std::unique_ptr<net::Channel> channel,
                                                           std::string client, Deadline deadline);
  [[nodiscard]] Session::Options session_options(Deadline login_deadline);
  // The connection has logged in, or has ended.
  void forget_unauthenticated(SessionId id);
  SessionOwner make_owner();
  Authorizer::Subject subject_of(const Session& session) const;
  Result<std::string> offer(Session& session, const std::string& name,
                            const tunnel::NewProxy& proxy);
  void withdraw(Session& session, const std::string& name);

  Executor executor_;
  Authorizer& authorizer_;
  HostTable& table_;
  Options options_;
  TransportHandshake handshake_;
  SessionOwner owner_;
  net::Listener listener_;
  std::uint16_t port_ = 0;
  SessionId last_id_ = 0;
  std::map<SessionId, std::shared_ptr<Session>> sessions_;
  // Sessions without yamux by their run ids, which only their clients know.
  std::unordered_map<std::string, SessionId> without_mux_;
  // What was admitted, as it was asked for, with the client's token.
  std::map<std::pair<SessionId, std::string>, tunnel::NewProxy> admitted_;
  // Addresses of connections that have not logged in, and how many each has.
  std::unordered_map<SessionId, std::string> unauthenticated_;
  std::unordered_map<std::string, std::size_t> unauthenticated_of_;
  std::map<std::string, Ban> bans_;
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& connections_;
  Counter& refused_connections_;
  TaskGroup tasks_;
};

}  // namespace gitops::tunnel_server
