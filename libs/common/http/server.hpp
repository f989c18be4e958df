#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ip/address.hpp>

#include "common/core/async.hpp"
#include "common/http/content_coding.hpp"
#include "common/http/message.hpp"
#include "common/net/channel.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::http {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free port
  std::optional<net::TlsOptions> tls = std::nullopt;
  std::size_t max_connections = 10'000;
  // Additional connections while all others are busy, for one request each that `reserved_for`
  // accepts; other requests get a 503. Used for health probes, which must not fail under load.
  std::size_t reserve = 0;
  std::function<bool(const Request&)> reserved_for = {};
  std::size_t max_head = 64 * 1024;  // request line and fields; more: 431
  std::chrono::milliseconds head_timeout{
      10'000};  // first byte to end of head (slow-loris): 408; TLS
  // Between requests. Longer than the 60 s of nginx and of load balancers: one that closes first
  // breaks a request that is on its way.
  std::chrono::milliseconds idle_timeout{65'000};
  std::chrono::milliseconds body_timeout{60'000};  // each write; all waiting below 1 KiB/s
};

class ServerConnection;
struct Upgraded;  // upgraded.hpp

// Reason for the end of Exchange::stream().
enum class StreamEnd { finished, client_left, draining };

// Request in flight for its handler. The handler calls reply(), or streams: start(), write()…,
// finish(). A handler that returns without a response or throws causes a 500 (an exception is
// logged). If the response had begun, the connection is closed instead, so that the client detects
// the truncation.
//
// An unread rest of the body of at most 64 KiB is read and dropped; otherwise the connection is
// closed after the response. Errors: timeout (body_timeout), unavailable (the client has
// disconnected), invalid_data (malformed framing of the body), invalid_argument (a forbidden
// header; nothing was sent).
class Exchange {
 public:
  // Head of the request, with an empty body.
  [[nodiscard]] const Request& request() const;
  // Parts of request().target before and after the first '?'.
  [[nodiscard]] std::string_view path() const;
  [[nodiscard]] std::string_view query() const;
  [[nodiscard]] const std::string& peer_address() const;
  // Names the route of this request, which log lines show in place of the path: a path may hold a
  // secret. `pattern` must outlive the request.
  void name_route(std::string_view pattern);

  // Limits the body for all later reads. Error: ErrorCode::too_large (respond with 413),
  // immediately if the request announces more. Without a call there is no limit.
  Result<void> limit_body(std::size_t limit);
  // Returns the whole body, within the limit.
  Task<Result<std::string>> read_body();
  Task<Result<std::string>> read_body(std::size_t limit);
  // Returns the whole body with its Content-Encoding decoded: gzip, deflate or one of `more`. The
  // limit applies to both forms. An error's http_status is the status to respond with: 400, 413 or
  // 415.
  Task<Result<std::string>> read_decoded_body(ContentCodings more = {});
  // Returns the next part, at most 16 KiB; empty at the end. The first read sends "100 Continue" to
  // a client that waits for it.
  Task<Result<std::string>> read_some();

  // Adds a field to the response of this request: a reply, a stream or an upgrade, of any handler.
  // Drops a forbidden field.
  void add_to_answer(std::string name, std::string value);
  // Returns the value of a field that was added; empty when there is none.
  [[nodiscard]] std::string_view added_to_answer(std::string_view name) const;
  // Sends the response. Adds Content-Length, Date and Connection; HEAD gets no body. Of these
  // fields the handler may set Date, "Connection: close", and for a response to HEAD the length.
  Task<Result<void>> reply(Response response);
  // Begins a response with chunked coding (until close for HTTP/1.0).
  Task<Result<void>> start(Response head);
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<void>> finish();

  // Returns when the client has disconnected: it closed its sending side, or the connection broke.
  // First drops the rest of this request's body. Later data is kept for the next request, up to 64
  // KiB. No other read may run at the same time.
  Task<> gone();
  // Returns when the server begins to drain. Long-running handlers should then end.
  Task<> draining();
  // Runs `work` until it ends, the client disconnects or the server drains; in the latter cases it
  // is cancelled and awaited. For handlers that stream or wait for long. Rethrows its exceptions.
  Task<StreamEnd> stream(Task<> work);

  // Sends a 101 with the fields of `head` and returns the connection, without a deadline. Only
  // draining() may be called afterwards. Upgraded::received holds bytes that followed the request.
  // The request must have no body.
  Task<Result<Upgraded>> upgrade(Response head);
  // Resets the connection immediately, even within a response. For fault injection in tests.
  void abort();

 private:
  friend class ServerConnection;
  explicit Exchange(ServerConnection& connection) : connection_(&connection) {}
  ServerConnection* connection_;
};

using Handler = std::function<Task<>(Exchange&)>;

// HTTP/1.1 server on the loop: keep-alive, pipelining in order, strict framing (parser.hpp; 400 and
// close), limits on all input of unauthenticated clients, TLS with reloaded certificates.
//
// At the maximum of connections, idle ones are closed for new ones, then those of the host with the
// most silent clients (for body_timeout / 12). Otherwise new ones use the reserve, or are closed.
class Server {
 public:
  // Does not bind and does not throw; see listen().
  Server(const Executor& executor, ServerOptions options, Handler handler);
  // Needs a completed stop(): all connections must have ended.
  ~Server();

  // Binds and starts to accept. The error names address and port.
  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const;
  // Serves a connection that was made elsewhere (a tunnel, a pair in memory) as if it had been
  // accepted, with the limits and the TLS of this server. Closes it at the limit of connections or
  // while draining. `peer` is the value of Exchange::peer_address().
  void adopt(std::unique_ptr<net::Channel> channel, const asio::ip::address& peer);
  // Drains: stops accepting and closes idle connections. Requests in flight continue with
  // "Connection: close".
  void drain();
  // Drains, waits for requests in flight until the deadline, then cancels them.
  Task<> stop(Deadline deadline);
  [[nodiscard]] std::size_t connections() const;

 private:
  friend class ServerConnection;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gitops::http
