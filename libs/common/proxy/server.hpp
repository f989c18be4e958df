#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/core/task_group.hpp"
#include "common/http/message.hpp"
#include "common/net/listener.hpp"
#include "common/net/tls_context.hpp"
#include "common/proxy/head.hpp"
#include "common/proxy/upstream.hpp"

// The proxy core: one HTTP/1.1 reverse proxy for the router and both ends of the tunnel
// (docs/adr/0007-proxy-core.md). What to do with a request is decided outside, from its head.
namespace gitops::proxy {

// Who sent a request.
struct PeerInfo {
  asio::ip::address address;
  std::string_view text;  // the address
  bool tls = false;
};

// What holds for every request of a route. 0 bytes: no limit.
struct RouteLimits {
  std::uint64_t max_body = 0;
  std::chrono::milliseconds answer_timeout{60'000};     // request sent -> head of the answer
  std::chrono::milliseconds body_timeout{60'000};       // each read or write of a body
  std::chrono::milliseconds tunnel_timeout{3'600'000};  // WebSocket: nothing in either direction
  bool websocket = false;
  bool gzip = false;
};

// A way to an upstream; shared by the requests that are on it, so that it can be replaced
// meanwhile.
struct ProxyRoute {
  std::string name;    // for logs and metrics: bounded
  std::size_t id = 0;  // the policy's own
  std::shared_ptr<Upstream> upstream;
  RouteLimits limits;
  std::string host;        // Host for the upstream
  std::string own_origin;  // see AnswerEdits
  std::string location_prefix;
};

struct Forward {
  std::shared_ptr<const ProxyRoute> route;
  std::string_view target;  // into the request's head, or into `rewritten`
  std::string rewritten = {};
  std::string_view request_id = {};  // empty: a new one
  bool trusted_peer = false;
  // Asked with the whole body, which is held in memory for it (at most max_body bytes): nothing
  // when the request may go on, else what it is answered with.
  std::function<std::optional<http::Response>(const RequestHead&, std::string_view body)> verify =
      {};
};

using Decision = std::variant<Forward, http::Response>;

// Why a request was not, or not completely, answered by its upstream.
enum class ProxyFailure {
  none,
  malformed_request,
  head_timeout,
  body_too_large,
  body_timeout,
  malformed_body,
  too_much_held,
  no_such_host,
  address_refused,
  connect_failed,
  connect_timeout,
  answer_timeout,
  upstream_lost,
  malformed_answer,
  client_gone,
};
std::string_view to_string(ProxyFailure failure);

// One request that has come to its end, for logs and metrics.
struct ExchangeRecord {
  const RequestHead* head = nullptr;  // null when it could not be read
  const ProxyRoute* route = nullptr;  // null when we answered ourselves
  const PeerInfo* peer = nullptr;
  int status = 0;  // 499: the client went away before an answer
  ProxyFailure failure = ProxyFailure::none;
  std::string_view detail;  // of the failure
  std::string_view request_id;
  std::uint64_t bytes_in = 0;  // bodies
  std::uint64_t bytes_out = 0;
  Clock::duration took{};
  bool reused = false;    // the upstream's connection
  bool upgraded = false;  // became a tunnel
};

// What decides; called on the loop thread, must not wait. The head is that of the current request.
struct ProxyPolicy {
  std::function<Decision(const RequestHead& head, const PeerInfo& peer)> decide;
  // The answer for a failure with this status; `head` is null when it could not be read.
  std::function<http::Response(const RequestHead* head, const ProxyRoute* route,
                               ProxyFailure failure, int status, std::string_view detail)>
      failed;
  // Called once for each request that was decided on or failed.
  std::function<void(const ExchangeRecord& record)> done;
};

// What the servers of several loops count together.
struct ProxyTotals {
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::size_t> held = 0;  // bytes, see ProxyOptions::max_held
};

struct ProxyOptions {
  std::string address = "127.0.0.1";  // see ListenOptions
  std::uint16_t port = 0;             // 0: any free port
  bool shares_port = false;           // with servers on other loops; the kernel spreads connections
  std::optional<net::TlsOptions> tls = std::nullopt;
  std::size_t max_connections = 20'000;     // further ones are closed at once
  std::size_t max_held = 64 * 1024 * 1024;  // bodies that are held for verification, together
  HeadLimits limits = {};
  std::chrono::milliseconds head_timeout{10'000};  // first byte to end of head, and TLS
  std::chrono::milliseconds idle_timeout{65'000};  // between requests
  std::shared_ptr<ProxyTotals> totals = std::make_shared<ProxyTotals>();  // for the two maxima
};

class ProxyConnection;
class ProxyExchange;

// Accepts connections and proxies their requests: keep-alive, pipelining in order, bodies streamed
// both ways with back-pressure, one resend of a request whose pooled connection turned out to be
// dead (when it is idempotent, or nothing of it had been written), WebSocket as a blind tunnel with
// half-close.
//
// Memory of a connection: about 3 KiB while idle; for a request a ProxyExchange and a block of 4
// KiB (32 when its head is larger), a block of 32 KiB for each of body and answer while they pass,
// and a deflater (about 70 KiB) while an answer is compressed. Only a route that verifies bodies
// holds one whole, up to its limit. A client that closes its sending side gives its request up,
// which is noticed within two seconds. Loop thread only; the loop outlives it.
class ProxyServer {
 public:
  ProxyServer(ProxyLoop& loop, ProxyOptions options, ProxyPolicy policy);
  // stop() first.
  ~ProxyServer();

  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Stops accepting and closes idle connections; what is under way goes on, with "Connection:
  // close".
  void drain();
  // Drains, waits for what is under way until the deadline, then cancels the rest.
  Task<> stop(Deadline deadline);

 private:
  friend class ProxyConnection;
  friend class ProxyExchange;

  Task<> accept_loop();
  void accepted(int descriptor, const asio::ip::address& client);
  Task<> watch_clients();
  [[nodiscard]] std::unique_ptr<ProxyExchange> lend_exchange(ProxyConnection& connection);
  void take_back(std::unique_ptr<ProxyExchange> exchange);

  ProxyLoop& loop_;
  ProxyOptions options_;
  ProxyPolicy policy_;
  std::optional<net::TlsContext> tls_;
  net::Acceptor acceptor_;
  std::uint16_t port_ = 0;
  bool draining_ = false;
  std::list<ProxyConnection*> connections_;
  std::vector<std::unique_ptr<ProxyExchange>> exchanges_;  // that may be lent
  std::uint64_t id_prefix_;
  std::uint64_t next_id_ = 0;
  RepeatFilter repeated_{std::chrono::minutes(1)};
  TaskGroup tasks_;
  Event ended_;
};

}  // namespace gitops::proxy
