#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/net/buffer.hpp"
#include "common/net/channel.hpp"
#include "common/net/connector.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::proxy {

// A connection to an upstream, and what was received on it.
struct UpstreamConnection {
  explicit UpstreamConnection(std::unique_ptr<net::Channel> c)
      : channel(std::move(c)), in(channel->reactor().blocks) {}
  std::unique_ptr<net::Channel> channel;
  net::Buffer in;
  Clock::time_point idle_since{};
  Clock::time_point usable_until{};  // of a pooled one
  // How long the upstream said that it keeps an idle connection.
  std::optional<std::chrono::seconds> kept_for;
  unsigned generation = 0;
};

// Makes connections to one place.
struct Dialer {
  // For a request of this client. Errors: not_found (no such host), forbidden (no address is allowed),
  // timeout, unavailable, tls, too_many_requests (see net::Resolver).
  std::function<Task<Result<std::unique_ptr<net::Channel>>>(Deadline deadline,
                                                            net::LookupClient client)>
      dial;
  // Counts up when connections made before must not be used for new requests any more, because
  // certificates have rotated. Empty: never.
  std::function<unsigned(Clock::time_point now)> generation = {};
};

struct TcpDialerOptions {
  std::string host;  // a name, or an address
  std::uint16_t port = 80;
  std::optional<net::TlsOptions> tls = std::nullopt;
  net::AddressFilter allowed = {};
};
// TCP, with TLS when that is asked for. The resolver outlives it.
Dialer tcp_dialer(net::Resolver& resolver, TcpDialerOptions options);

struct UpstreamOptions {
  std::chrono::milliseconds connect_timeout{5'000};  // lookup, TCP and TLS together
  // Of a pooled connection, where the upstream does not tell; below the 5 s of Node.js. Where it
  // tells, it is that less a second, for requests that are on their way, but at most max_idle_time.
  std::chrono::milliseconds idle_timeout{4'000};
  std::chrono::milliseconds max_idle_time{55'000};
  std::size_t max_idle = 16'384;
};

// One place that requests are forwarded to, with the connections that are kept for the next
// request. Loop thread only.
class Upstream {
 public:
  Upstream(Dialer dialer, UpstreamOptions options)
      : dialer_(std::move(dialer)), options_(options) {}

  // The pooled connection that was used last and seems to be alive; null when there is none. Looks
  // into the socket of one that was idle for a second or more.
  std::unique_ptr<UpstreamConnection> take();
  // A new one, for a request of this client. Errors as of Dialer::dial.
  Task<Result<std::unique_ptr<UpstreamConnection>>> connect(net::LookupClient client = {});
  // Keeps a connection on which nothing is going on.
  void put(std::unique_ptr<UpstreamConnection> connection);
  // Closes connections that the upstream may be about to close.
  void sweep(Clock::time_point now);
  void close_idle() { idle_.clear(); }
  [[nodiscard]] std::size_t idle() const { return idle_.size(); }

 private:
  [[nodiscard]] unsigned generation(Clock::time_point now) const {
    return dialer_.generation ? dialer_.generation(now) : 0;
  }

  [[nodiscard]] Clock::duration idle_time(const UpstreamConnection& connection) const;

  Dialer dialer_;
  UpstreamOptions options_;
  std::deque<std::unique_ptr<UpstreamConnection>> idle_;  // oldest first
};

}  // namespace gitops::proxy
