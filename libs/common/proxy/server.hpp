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
// (docs/adr/0007-proxy-core.md). What to do with a request is decided outside, from its head.
namespace gitops::proxy {

struct ServerOptions {
  net::ListenOptions listen = {.address = "127.0.0.1"};
  std::optional<net::TlsOptions> tls = std::nullopt;
  HeadLimits limits = {};
  std::chrono::milliseconds head_timeout{10'000};  // first byte to end of head, and TLS
  std::chrono::milliseconds idle_timeout{65'000};  // between requests
  std::shared_ptr<Totals> totals = std::make_shared<Totals>();  // with the limits of all clients
};

// Accepts connections and proxies their requests: keep-alive, pipelining in order, bodies streamed
// both ways with back-pressure, one resend of a request whose pooled connection turned out to be
// dead (see Transaction), WebSocket as a blind tunnel with half-close.
//
// Memory of a connection: about 3 KiB while idle; for a request a Transaction and a block of 4 KiB
// (32 when its head is larger), a block of 32 KiB for each of body and answer while they pass, and
// a deflater (about 70 KiB) while an answer is compressed. Only a route with Forward::inspection holds a
// body that is larger than a block, up to its limit. Loop thread only; the loop outlives it.
//
// When the maximum of connections is reached, of one peer or of all, those that have waited longest
// for a request are closed for new ones; while every one is busy, new ones are refused.
class Server {
 public:
  Server(const Executor& executor, ServerOptions options, Policy policy);
  // stop() first.
  ~Server();

  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Serves a connection that was made elsewhere, as if it had been accepted; closes it when the
  // limits say so. `peer.tls` tells what the client used; the server's own TLS is for its listener
  // only.
  void adopt(std::unique_ptr<net::Channel> channel, PeerInfo peer);
  // Tells each client with its next answer that its connection ends, and goes on accepting. A while
  // before drain(), it leaves no request on its way to a connection that drain() closes.
  void wind_down() { context_.transactions.draining = true; }
  // Accepts clients whom the system has already connected, for one request each, and then stops
  // accepting. Closes idle connections; what is under way goes on, with "Connection: close".
  void drain();
  // Drains, waits for what is under way until the deadline, then cancels the rest.
  Task<> stop(Deadline deadline);

 private:
  class Connection;

  void accepted(std::unique_ptr<net::Channel> channel, const asio::ip::address& address);
  // False when there is no place for another connection of this peer.
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
