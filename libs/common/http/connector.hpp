#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/core/async.hpp"
#include "common/http/buffer.hpp"
#include "common/http/parser.hpp"
#include "common/http/url.hpp"
#include "common/net/channel.hpp"
#include "common/net/resolve.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::http {

// Connection of a client, with its state between requests.
struct Connection {
  Connection(std::unique_ptr<net::Channel> c, std::size_t max_head)
      : channel(std::move(c)), parser(max_head) {}

  // Prepares for the response to the next request; `no_body` as in ResponseParser::reset.
  void expect_answer(bool no_body);
  // Returns the parser's next step; reads more bytes if necessary. A close that ends the response
  // is its end. The caller consumes bytes from `in`.
  Task<Result<ParseStep>> next();

  std::unique_ptr<net::Channel> channel;
  ResponseParser parser;
  ReadBuffer in;
  std::string out;
  std::string key;        // see Connector::key_of
  bool answered = false;  // a byte of the response was received
  const Clock::time_point made = Clock::now();
  Clock::time_point retire{};  // not pooled after this; set by the pool
  // Time for which the server keeps an idle connection, if it has said so.
  std::optional<std::chrono::seconds> kept_for = {};
};

// Makes connections for one Client: name lookup, TCP, the proxy's tunnel, TLS. Loop thread only;
// the resolver must outlive it.
class Connector {
 public:
  Connector(net::Resolver& resolver, net::TlsOptions tls, std::chrono::milliseconds timeout,
            std::size_t max_response_head);

  // Returns a connection for requests to `url`; `proxy` is null for a direct one. An HTTP proxy
  // opens a tunnel (CONNECT) for TLS; otherwise it forwards the requests, unless `switches`: it
  // would not pass on a switch of protocols. TLS with an https:// proxy trusts the same authorities
  // as TLS with the origin. Errors name the origin or the proxy, whichever failed.
  Task<Result<std::unique_ptr<Connection>>> connect(const Url& url, const Url* proxy,
                                                    Deadline deadline, bool switches = false);
  // Returns the key of a new connection: origin, proxy, and the current certificates. Reloads
  // rotated certificates first; the error says that none is usable.
  Result<std::string> key_of(const Url& url, const Url* proxy);

 private:
  Task<Result<void>> open_tunnel(Connection& connection, const Url& url, const Url& proxy);
  Task<Result<void>> open_socks(net::Channel& channel, const Url& url, const Url& proxy);
  [[nodiscard]] std::string current_key(const Url& url, const Url* proxy) const;

  net::Resolver& resolver_;
  net::TlsContext tls_;
  net::TlsContext proxy_tls_;
  std::chrono::milliseconds timeout_;
  std::size_t max_response_head_;
};

}  // namespace gitops::http
