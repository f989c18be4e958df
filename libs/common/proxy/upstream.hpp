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
  unsigned generation = 0;
};

// Makes connections to one place.
struct Dialer {
  // Errors: not_found (no such host), forbidden (no address is allowed), timeout, unavailable, tls.
  std::function<Task<Result<std::unique_ptr<net::Channel>>>(Deadline deadline)> dial;
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
  std::chrono::milliseconds idle_timeout{55'000};    // of a pooled connection
  std::size_t max_idle = 16'384;  // what is not used for idle_timeout goes earlier
};

// One place that requests are forwarded to, with the connections that are kept for the next
// request. Loop thread only.
class Upstream {
 public:
  Upstream(Dialer dialer, UpstreamOptions options)
      : dialer_(std::move(dialer)), options_(options) {}

  // The pooled connection that was used last and seems to be alive; null when there is none.
  std::unique_ptr<UpstreamConnection> take();
  // A new one. Errors as of Dialer::dial.
  Task<Result<std::unique_ptr<UpstreamConnection>>> connect();
  // Keeps a connection on which nothing is going on.
  void put(std::unique_ptr<UpstreamConnection> connection);
  // Closes what has been idle for too long.
  void sweep(Clock::time_point now);
  void close_idle() { idle_.clear(); }
  [[nodiscard]] std::size_t idle() const { return idle_.size(); }

 private:
  [[nodiscard]] unsigned generation(Clock::time_point now) const {
    return dialer_.generation ? dialer_.generation(now) : 0;
  }

  Dialer dialer_;
  UpstreamOptions options_;
  std::deque<std::unique_ptr<UpstreamConnection>> idle_;  // oldest first
};

}  // namespace gitops::proxy
