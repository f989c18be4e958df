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

// Connection to an upstream, and the bytes received on it.
struct UpstreamConnection {
  explicit UpstreamConnection(std::unique_ptr<net::Channel> c)
      : channel(std::move(c)), in(channel->reactor().blocks, net::BlockPool::kResponse) {}
  std::unique_ptr<net::Channel> channel;
  net::Buffer in;
  Clock::time_point idle_since{};
  Clock::time_point usable_until{};  // while pooled
  // Time for which the upstream keeps an idle connection, by its own statement.
  std::optional<std::chrono::seconds> kept_for;
  unsigned generation = 0;
};

// Connects to one destination.
struct Dialer {
  // Connects for a request of this client. Errors: not_found (no such host), forbidden (no allowed
  // address), timeout, unavailable, tls, too_many_requests (see net::Resolver).
  std::function<Task<Result<std::unique_ptr<net::Channel>>>(Deadline deadline,
                                                            net::LookupClient client)>
      dial;
  // Returns a number that increases when earlier connections must not be used for new requests,
  // because certificates have rotated. Empty: never.
  std::function<unsigned(Clock::time_point now)> generation = {};
};

struct TcpDialerOptions {
  std::string host;  // a name, or an address
  std::uint16_t port = 80;
  std::optional<net::TlsOptions> tls = std::nullopt;
  net::AddressFilter allowed = {};
};
// Returns a dialer for TCP, with TLS if it is configured. The resolver must outlive it.
Dialer tcp_dialer(net::Resolver& resolver, TcpDialerOptions options);

struct UpstreamOptions {
  std::chrono::milliseconds connect_timeout{5'000};  // lookup, TCP and TLS together
  // Idle timeout of a pooled connection if the upstream states none; below the 5 s of Node.js. A
  // stated timeout applies less one second, for requests in flight, up to max_idle_time.
  std::chrono::milliseconds idle_timeout{4'000};
  std::chrono::milliseconds max_idle_time{55'000};
  std::size_t max_idle = 16'384;
};

// Destination of forwarded requests, with its pooled connections. Loop thread only.
class Upstream {
 public:
  Upstream(Dialer dialer, UpstreamOptions options)
      : dialer_(std::move(dialer)), options_(options) {}

  // Returns the most recently used pooled connection that seems alive; null if there is none.
  // Checks the socket of one that was idle for a second or more.
  std::unique_ptr<UpstreamConnection> take();
  // Makes a new connection for a request of this client. Errors as for Dialer::dial.
  Task<Result<std::unique_ptr<UpstreamConnection>>> connect(net::LookupClient client = {});
  // Pools a connection without activity.
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
