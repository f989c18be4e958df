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

// State of a client.
enum class ClientState : std::uint8_t { logging_in, without_host, standing_by, serving, leaving };
// "logging in", "without a host", "standing by", "serving", "leaving".
std::string_view to_string(ClientState state);
ClientState state_of(const Session& session, const std::vector<HostTable::Domain>& domains);

// Registry of the tunnel's clients: accepts their connections, owns their sessions, adds their
// offers to the host table, and manages their life cycle. Loop thread only.
class ClientRegistry : private SessionOwner {
 public:
  struct Options {
    net::ListenOptions listen = {};
    TransportHandshake::Options handshake = {};
    Session::Options session = {};
    // Number of sessions that a client is asked to keep. Applies only if the authorizer confirms
    // the owners of hosts; otherwise a second session would be refused.
    std::int64_t links = 0;
    std::string subdomain_host;
    std::int64_t vhost_port = 80;                     // port that clients are given for users
    std::chrono::milliseconds login_timeout{10'000};  // from the connection to the login
    std::size_t max_clients = 10'000;
    // Number of connections that have not logged in. The addresses of one IPv6 network of 64 bits
    // are one.
    std::size_t max_unauthenticated = 2'000;
    std::size_t max_unauthenticated_per_address = 2'000;
  };
  // The authorizer and the table must outlive the registry.
  ClientRegistry(const Executor& executor, Authorizer& authorizer, HostTable& table,
                 Metrics& metrics, Options options);

  // Starts accepting clients. Errors: an unreadable certificate, an unavailable port.
  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Serves a connection that was made elsewhere as if it had been accepted. Closes it if there are
  // too many connections.
  void adopt(std::unique_ptr<net::Channel> channel, const asio::ip::address& address);
  // Stops accepting clients.
  void drain();
  // Drains all sessions: asks every client to reconnect to another server as soon as its users have
  // left.
  void drain_sessions();
  // Ends all sessions immediately.
  Task<> stop();

  // Ends clients whose hosts the list of runtimes no longer allows. Call it once a second.
  void check_again();

  // Returns the session; null if it does not exist.
  [[nodiscard]] std::shared_ptr<Session> session(SessionId id) const;
  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const;
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }

  // A ban of a host: until `until`, no client may offer the host and its users are refused.
  struct Ban {
    WallTime until{};
    std::string reason;
  };
  // Bans a domain; sessions that offer it are ended.
  void ban(const std::string& domain, Ban ban);
  bool unban(const std::string& domain);
  // The bans in force.
  [[nodiscard]] std::map<std::string, Ban> bans();
  // The reason why a domain is banned; empty if it is not.
  [[nodiscard]] std::string ban_of(const std::string& domain);

 private:
  Task<> serve(SessionId id, std::shared_ptr<std::unique_ptr<net::Channel>> channel,
               std::string client);
  // Reads the first message of a connection without yamux: a login, or a work connection of an
  // existing session. Returns null for a work connection without a session.
  Task<Result<std::shared_ptr<Session>>> begin_without_mux(SessionId id,
                                                           std::unique_ptr<net::Channel> channel,
                                                           std::string client, Deadline deadline);
  [[nodiscard]] Session::Options session_options(Deadline login_deadline);
  // Returns whether another client may connect. At the limit, ends a session that has offered no
  // host within login_timeout of its login: without a token of the server, anyone may log in.
  bool make_room();
  // Connection that has not logged in.
  struct Unauthenticated {
    std::shared_ptr<proxy::PeerUse> peer;
    net::Channel* channel = nullptr;  // the accepted connection; it lives as long as the entry
    Clock::time_point since{};
    bool has_sent_login = false;
  };
  // Returns whether another connection of this peer may log in. At a limit, ends one that has not
  // sent its login for a quarter of login_timeout, so that slow connections do not keep others out.
  bool make_room_to_log_in(const proxy::PeerUse& peer);
  // Stops counting the connection as unauthenticated, after its login or its end.
  void forget_unauthenticated(SessionId id);
  Authorizer::Subject subject_of(const Session& session) const;

  // The decisions about sessions.
  SessionOwner& owner() { return *this; }
  Task<Result<tunnel::Login>> admit_login(Session& session, tunnel::Login login) override;
  void on_logged_in(Session& session) override;
  Task<Result<tunnel::NewProxy>> admit_proxy(Session& session, tunnel::NewProxy proxy) override;
  Result<std::string> offer(Session& session, const std::string& name,
                            const tunnel::NewProxy& proxy) override;
  void withdraw(Session& session, const std::string& name) override;
  Task<Result<void>> admit_ping(Session& session, const tunnel::Ping& ping) override;
  Task<Result<void>> admit_work(Session& session, const tunnel::NewWorkConn& work) override;

  Executor executor_;
  Authorizer& authorizer_;
  HostTable& table_;
  Options options_;
  TransportHandshake handshake_;
  net::Listener listener_;
  std::uint16_t port_ = 0;
  SessionId last_id_ = 0;
  std::map<SessionId, std::shared_ptr<Session>> sessions_;
  // Sessions without yamux by their run ids, which only their clients know.
  std::unordered_map<std::string, SessionId> without_mux_;
  // Admitted proxies as the clients requested them, with the clients' tokens.
  std::map<std::pair<SessionId, std::string>, tunnel::NewProxy> admitted_;
  std::uint64_t checked_list_ = 0;  // Authorizer::lists() by which they were checked last
  // Connections that have not logged in, and their number for each peer.
  std::unordered_map<SessionId, Unauthenticated> unauthenticated_;
  proxy::Totals peers_;
  // Sessions that have offered no host since their login, and its time.
  std::map<SessionId, Clock::time_point> without_host_;
  std::map<std::string, Ban> bans_;
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& connections_;
  Counter& refused_connections_;
  TaskGroup tasks_;
};

}  // namespace gitops::tunnel_server
