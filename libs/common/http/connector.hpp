#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
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

// A client's connection and the state that it keeps between requests.
struct Connection {
  Connection(std::unique_ptr<net::Channel> c, std::size_t max_head)
      : channel(std::move(c)), parser(max_head) {}

  // Makes ready for the answer to the next request; `no_body` as in ResponseParser::reset.
  void expect_answer(bool no_body);
  // The parser's next step, reading when it needs more bytes. A close that ends the answer counts
  // as its end. The caller consumes from `in`.
  Task<Result<ParseStep>> next();

  std::unique_ptr<net::Channel> channel;
  ResponseParser parser;
  ReadBuffer in;
  std::string out;
  std::string key;        // what it may be used for, see Connector::key_of
  bool answered = false;  // something of the answer was received
  const Clock::time_point made = Clock::now();
  Clock::time_point retire{};  // not pooled after this; set by the pool
};

// Makes the connections of one Client: name lookup, TCP, the proxy's tunnel, TLS. Loop thread only;
// the resolver outlives it.
class Connector {
 public:
  Connector(net::Resolver& resolver, net::TlsOptions tls, std::chrono::milliseconds timeout,
            std::size_t max_response_head);

  // A connection on which a request to `url` can be sent; `proxy` is null for a direct one. Errors
  // name the origin or the proxy, whichever it was.
  Task<Result<std::unique_ptr<Connection>>> connect(const Url& url, const Url* proxy,
                                                    Deadline deadline);
  // Names what a new connection could be used for: origin, proxy, and the certificates in use now.
  // Notices rotated ones first, and fails when none can be used.
  Result<std::string> key_of(const Url& url, const Url* proxy);

 private:
  Task<Result<void>> open_tunnel(Connection& connection, const Url& url, const Url& proxy);
  Task<Result<void>> open_socks(net::Channel& channel, const Url& url, const Url& proxy);
  [[nodiscard]] std::string current_key(const Url& url, const Url* proxy) const;

  net::Resolver& resolver_;
  net::TlsContext tls_;
  std::chrono::milliseconds timeout_;
  std::size_t max_response_head_;
};

}  // namespace gitops::http
