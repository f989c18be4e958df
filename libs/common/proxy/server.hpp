#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "common/core/task_group.hpp"
#include "common/net/listener.hpp"
#include "common/net/tls_context.hpp"
#include "common/proxy/driver.hpp"

// The proxy core: one HTTP/1.1 reverse proxy for the router and both ends of the tunnel
// (docs/adr/0007-proxy-core.md). A policy decides on each request by its head.
namespace gitops::proxy {

struct ServerOptions {
  net::ListenOptions listen = {.address = "127.0.0.1"};
  std::optional<net::TlsOptions> tls = std::nullopt;
  http::HeadLimits limits = {};
  std::chrono::milliseconds head_timeout{10'000};  // first byte to end of head; TLS handshake
  std::chrono::milliseconds idle_timeout{65'000};  // between requests
  std::shared_ptr<Totals> totals = std::make_shared<Totals>();  // with the limits of all clients
  Tracer* tracer = nullptr;  // of the spans of requests; outlives the server
};

// Accepts connections and proxies their requests: keep-alive, pipelining in order, bodies streamed
// in both directions with back-pressure, one retry of a request whose pooled connection was dead
// (see Transaction), WebSocket as a blind tunnel with half-close.
//
// Memory of a connection: about 3 KiB while idle. A request adds a Transaction and a block of 4 KiB
// (32 for a larger head), a block of 32 KiB for each of body and response while they are relayed,
// and a deflater (about 70 KiB) while a response is compressed. Only a route with
// Forward::inspection holds a body larger than a block, up to its limit. Loop thread only; the loop
// must outlive the server.
//
// At the maximum of connections, of one peer or of all, the connections that have waited longest
// for a request are closed for new ones. If all are busy, new ones are refused.
class Server {
 public:
  Server(const Executor& executor, ServerOptions options, Policy policy);
  // Needs a completed stop().
  ~Server();

  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Serves a connection that was made elsewhere as if it had been accepted. Closes it if a limit is
  // exceeded. `peer.tls` states whether the client used TLS; the server's own TLS is for its
  // listener only.
  void adopt(std::unique_ptr<net::Channel> channel, PeerInfo peer);
  // Closes client connections with their next response and continues to accept. Called some time
  // before drain(), it avoids requests in flight on connections that drain() closes.
  void wind_down() { context_.transactions.draining = true; }
  // Drains: accepts clients that the system has already connected, for one request each, then stops
  // accepting. Closes idle connections; requests in flight continue, with "Connection: close".
  void drain();
  // Drains, waits for requests in flight until the deadline, then cancels them.
  Task<> stop(Deadline deadline);

 private:
  class Connection;

  void accepted(std::unique_ptr<net::Channel> channel, const asio::ip::address& address);
  // Makes room for another connection of this peer. Returns false at a limit.
  bool make_room(const PeerUse& peer);
  void serve(std::unique_ptr<net::Channel> channel, PeerInfo peer, bool handshake);

  ServerOptions options_;
  DriverContext context_;
  std::optional<net::TlsContext> tls_;
  net::Listener listener_;
  std::uint16_t port_ = 0;
  bool is_drained_ = false;
  std::list<Connection*> connections_;
  RepeatFilter repeated_{std::chrono::minutes(1)};
  TaskGroup tasks_;
  Event ended_;
};

}  // namespace gitops::proxy
