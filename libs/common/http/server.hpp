#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/ip/address.hpp>

#include "common/core/async.hpp"
#include "common/http/message.hpp"
#include "common/net/channel.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::http {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free port
  std::optional<net::TlsOptions> tls = std::nullopt;
  std::size_t max_connections = 10'000;
  // Further connections while all those are busy, for one request each that `reserved_for` accepts;
  // any other request is answered with 503. For health probes, which must not fail under load.
  std::size_t reserve = 0;
  std::function<bool(const Request&)> reserved_for = {};
  std::size_t max_head = 64 * 1024;  // request line and fields; more: 431
  std::chrono::milliseconds head_timeout{
      10'000};  // first byte to end of head (slow-loris): 408; TLS
  std::chrono::milliseconds idle_timeout{60'000};  // between requests
  std::chrono::milliseconds body_timeout{60'000};  // for each read or write of a body
};

class ServerConnection;
struct Upgraded;  // upgraded.hpp

// Why Exchange::stream() ended.
enum class StreamEnd { finished, client_left, draining };

// A request in flight as its handler sees it. Reply, or stream: start(), write()…, finish().
// A handler that returns without an answer gives 500; one that throws, too (and is logged). When
// the answer had begun, the connection is cut instead, so that the client sees that it is
// incomplete.
//
// What the handler leaves unread of the body is read and dropped when it is at most 64 KiB;
// otherwise the connection is closed after the answer. Errors: timeout (body_timeout), unavailable
// (the client is gone), invalid_data (the body's framing is broken), invalid_argument (a header
// that must not be sent; nothing was sent).
class Exchange {
 public:
  // Head of the request; body empty.
  [[nodiscard]] const Request& request() const;
  // request().target split at the first '?'.
  [[nodiscard]] std::string_view path() const;
  [[nodiscard]] std::string_view query() const;
  [[nodiscard]] std::string peer_address() const;

  // Limits the body for all reads that follow: more is ErrorCode::too_large (answer it with 413),
  // at once when the request announces it. Without a call there is no limit.
  Result<void> limit_body(std::size_t limit);
  // The whole body, within the limit.
  Task<Result<std::string>> read_body();
  Task<Result<std::string>> read_body(std::size_t limit);
  // The same, with its Content-Encoding undone. The limit holds for both forms; an error's
  // http_status is what to answer: 400, 413 or 415.
  Task<Result<std::string>> read_decoded_body();
  // The next part, at most 16 KiB; empty at the end. A client that waits for "100 Continue" gets it
  // with the first read.
  Task<Result<std::string>> read_some();

  // Adds a field to whatever answer this request gets: a reply, a stream or an upgrade, of whichever
  // handler. A field that must not be sent is dropped.
  void add_to_answer(std::string name, std::string value);
  // Sends the answer. Content-Length, Date and Connection are added; HEAD gets no body. Of these
  // fields the handler may set Date, "Connection: close", and for an answer to HEAD the length.
  Task<Result<void>> reply(Response response);
  // Sends a head with chunked coding (or until close for HTTP/1.0).
  Task<Result<void>> start(Response head);
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<void>> finish();

  // Returns when the client has left: it closed its sending side, or the connection broke. What it
  // sends meanwhile is kept for the next request, up to 64 KiB; the rest of this request's body is
  // dropped first. Nothing may be read at the same time.
  Task<> gone();
  // Returns when the server begins to drain: what would go on for long should end now.
  Task<> draining();
  // Runs `work` until it ends by itself, the client leaves or the server drains; in the latter
  // cases it is cancelled and awaited. For handlers that stream or wait for long. Throws what it
  // throws.
  Task<StreamEnd> stream(Task<> work);

  // Sends a 101 with the fields of `head` and hands over the connection, which has no deadline. Only
  // draining() may be called afterwards. Upgraded::received are bytes that followed the request. The
  // request must have no body.
  Task<Result<Upgraded>> upgrade(Response head);
  // Resets the connection at once, in the middle of whatever is being sent. For faults in tests.
  void abort();

 private:
  friend class ServerConnection;
  explicit Exchange(ServerConnection& connection) : connection_(&connection) {}
  ServerConnection* connection_;
};

using Handler = std::function<Task<>(Exchange&)>;

// HTTP/1.1 server on the loop: keep-alive, pipelining in order, strict framing (parser.hpp; 400 and
// close), limits on everything a stranger can send, TLS with reloaded certificates.
//
// When the maximum of connections is reached, those that have waited longest for a request are
// closed for new ones. While every one is busy, new ones have the reserve, or are closed.
class Server {
 public:
  // Binds at once: throws nothing, see listen().
  Server(const Executor& executor, ServerOptions options, Handler handler);
  // All connections must have ended: stop() first.
  ~Server();

  // Binds and starts to accept; an error names address and port.
  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const;
  // Serves a connection that was made elsewhere (a tunnel, a pair in memory) as if it had been
  // accepted, with the limits and the TLS of this server. Closes it when there is no place for it or
  // the server drains. `peer` is what Exchange::peer_address() tells.
  void adopt(std::unique_ptr<net::Channel> channel, const asio::ip::address& peer);
  // Stops accepting and closes idle connections; requests in flight go on and get
  // "Connection: close".
  void drain();
  // Drains, waits for requests in flight until the deadline, then cancels the rest.
  Task<> stop(Deadline deadline);
  [[nodiscard]] std::size_t connections() const;

 private:
  friend class ServerConnection;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gitops::http
