#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/core/async.hpp"
#include "common/http/message.hpp"
#include "common/http/proxy_settings.hpp"
#include "common/http/url.hpp"
#include "common/net/resolve.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::http {

struct ClientOptions {
  net::TlsOptions tls = {};
  ProxySettings proxy = {};
  std::string user_agent = "gitops-runtime";
  std::chrono::milliseconds connect_timeout{10'000};  // lookup, TCP, proxy and TLS together
  std::chrono::milliseconds idle_timeout{55'000};     // of a pooled connection
  std::chrono::milliseconds max_age{600'000};         // of a pooled connection; at least half of it
  std::size_t max_idle_per_host = 16;
  std::size_t max_response_head = 64 * 1024;
};

struct Upgraded;  // upgraded.hpp

// Request in flight. Destroying it before the end of the response closes the connection; otherwise
// the connection returns to the pool.
class ClientExchange {
 public:
  ClientExchange(ClientExchange&&) noexcept;
  ClientExchange& operator=(ClientExchange&&) noexcept;
  ~ClientExchange();

  // Writes a part of the request body, for requests opened with a streamed body; finish() ends it.
  // If a length was announced, exactly that many bytes must be written.
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<void>> finish();
  // Returns the head of the response (empty body). Skips interim 1xx responses.
  Task<Result<Response>> read_head();
  // Returns the next part of the body, decoded from chunked and, if the client requested it, gzip;
  // an empty string is the end. At most a buffer (16 KiB; more after inflating) at a time.
  Task<Result<std::string>> read_some();
  // Returns the whole response, whatever its status. Error: too_large, for a decoded body above
  // `max_body` bytes.
  Task<Result<Response>> read_all(std::size_t max_body);
  // Sets the deadline of all further operations. Streams set a new one for each read.
  void set_deadline(Deadline deadline);

 private:
  friend class Client;
  struct State;
  explicit ClientExchange(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// HTTP/1.1 client for one kind of peer (one TLS and proxy setting): pooled keep-alive connections,
// streaming in both directions, verified TLS, proxies, gzip responses. Does not follow redirects.
//
// Retries a request once, on a new connection, if it failed on a reused connection before any byte
// of a response and its method is idempotent or the peer had closed before the write. Errors are
// distinct: lookup, refused, TLS reason, timeout, protocol. Messages name host and port and contain
// no secret. Loop thread only; it must outlive its exchanges.
class Client {
 public:
  Client(const Executor& executor, net::Resolver& resolver, ClientOptions options);
  ~Client();

  // Sends `request` to the origin of `url` (request.target is used instead of its path and query)
  // and returns the whole response, whatever its status. `max_body` limits the decoded body.
  Task<Result<Response>> send(const Url& url, Request request, Deadline deadline,
                              std::size_t max_body = 64 * 1024 * 1024);
  // Sends the head, and request.body if it is not empty. `streamed` announces a body that follows
  // by write() and finish(): one of `length` bytes, or a chunked one without a length. `deadline`
  // applies to everything until set_deadline() changes it.
  enum class Body { inline_body, streamed };
  Task<Result<ClientExchange>> open(const Url& url, Request request, Deadline deadline,
                                    Body body = Body::inline_body,
                                    std::optional<std::uint64_t> length = {});
  // Sends a request to switch protocols (the caller sets Connection and Upgrade) on a connection of
  // its own, and returns the connection if the peer agrees. Any other response is an error with its
  // http_status.
  Task<Result<Upgraded>> upgrade(const Url& url, Request request, Deadline deadline);
  // Closes idle pooled connections.
  void close_idle();
  [[nodiscard]] std::size_t idle_connections() const;

 private:
  friend class ClientExchange;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gitops::http
