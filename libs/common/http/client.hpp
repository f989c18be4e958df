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

// A request in flight. When it is destroyed before the response was read to its end, the connection
// is closed; otherwise the connection returns to the pool.
class ClientExchange {
 public:
  ClientExchange(ClientExchange&&) noexcept;
  ClientExchange& operator=(ClientExchange&&) noexcept;
  ~ClientExchange();

  // A part of the request body, for requests opened with a streamed body; then finish(). Of a body
  // whose length was announced, not more and not less must be written.
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<void>> finish();
  // The response's head (body empty). Interim 1xx answers are skipped.
  Task<Result<Response>> read_head();
  // The next part of the body, decoded from chunked and, when the client asked for it, gzip; an
  // empty string is the end. At most a buffer (16 KiB; more after inflating) at a time.
  Task<Result<std::string>> read_some();
  // The whole response, whatever its status. A body over `max_body` bytes (decoded) is `too_large`.
  Task<Result<Response>> read_all(std::size_t max_body);
  // The deadline of all further operations; streams set a new one for each read.
  void set_deadline(Deadline deadline);

 private:
  friend class Client;
  struct State;
  explicit ClientExchange(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// HTTP/1.1 client for one kind of peer (one TLS and proxy setting): pooled keep-alive connections,
// streaming both ways, verified TLS, proxies, gzip answers. No redirects are followed.
//
// A request that fails on a reused connection before any byte of an answer is sent once more on a
// new one when its method is idempotent or the peer had closed before we wrote. No other retry.
// Errors are told apart: lookup, refused, TLS reason, timeout, protocol; messages name host and
// port and no secret. Loop thread only; outlives its exchanges.
class Client {
 public:
  Client(const Executor& executor, net::Resolver& resolver, ClientOptions options);
  ~Client();

  // Sends `request` to the origin of `url` (its path and query are not used: request.target is) and
  // reads the whole answer, whatever its status. `max_body` limits the decoded body.
  Task<Result<Response>> send(const Url& url, Request request, Deadline deadline,
                              std::size_t max_body = 64 * 1024 * 1024);
  // Sends the head, and request.body when it is not empty. `streamed` announces a body that follows
  // by write() and finish(): one of `length` bytes, or a chunked one without a length. `deadline`
  // covers everything until set_deadline() moves it.
  enum class Body { inline_body, streamed };
  Task<Result<ClientExchange>> open(const Url& url, Request request, Deadline deadline,
                                    Body body = Body::inline_body,
                                    std::optional<std::uint64_t> length = {});
  // Sends a request that asks to switch protocols (Connection and Upgrade are the caller's) on a
  // connection of its own, and hands that over when the peer agrees. Another answer is an error
  // with its http_status.
  Task<Result<Upgraded>> upgrade(const Url& url, Request request, Deadline deadline);
  // Closes idle connections.
  void close_idle();
  [[nodiscard]] std::size_t idle_connections() const;

 private:
  friend class ClientExchange;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gitops::http
