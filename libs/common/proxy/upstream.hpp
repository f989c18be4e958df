#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/http/wire_text.hpp"
#include "common/net/resolve.hpp"
#include "common/net/tls_context.hpp"
#include "common/proxy/buffer.hpp"
#include "common/proxy/wire.hpp"

namespace gitops::proxy {

// What the connections of a proxy share on their loop. Outlives them.
struct ProxyLoop {
  ProxyLoop(const Executor& e, net::Resolver& r) : executor(e), resolver(r), wheel(e), poller(e) {}
  Executor executor;
  net::Resolver& resolver;
  net::TimerWheel wheel;
  net::Poller poller;
  BlockPool blocks;
  http::DateField date;
};

struct UpstreamOptions {
  std::string host;  // a name, or an address
  std::uint16_t port = 80;
  std::optional<net::TlsOptions> tls = std::nullopt;
  // Which addresses the name may resolve to; empty: every one. Asked for each address that is
  // connected to, so that a name cannot change its mind between the check and its use (AC-02).
  std::function<bool(const asio::ip::address&)> allowed = {};
  std::chrono::milliseconds connect_timeout{5'000};  // lookup, TCP and TLS together
  std::chrono::milliseconds idle_timeout{55'000};    // of a pooled connection
  std::size_t max_idle = 16'384;  // what is not used for idle_timeout goes earlier
};

// A connection to an upstream, and what was received on it.
struct UpstreamConnection {
  UpstreamConnection(int descriptor, ProxyLoop& loop)
      : wire(descriptor, loop.poller, loop.wheel), in(loop.blocks) {}
  Wire wire;
  ProxyBuffer in;
  Clock::time_point idle_since{};
  unsigned tls_generation = 0;
};

// One place that requests are forwarded to: looked up when it is needed, several addresses tried in
// turn, connections kept for the next request. Lookups are the resolver's (answers are kept 30 s,
// failures 2 s, and forgotten when no address accepted). Loop thread only; the loop outlives it.
class Upstream {
 public:
  Upstream(ProxyLoop& loop, UpstreamOptions options);

  // The pooled connection that was used last and seems to be alive; null when there is none.
  std::shared_ptr<UpstreamConnection> take();
  // A new one. Errors: not_found (no such host), forbidden (no address is allowed), timeout,
  // unavailable, tls.
  Task<Result<std::shared_ptr<UpstreamConnection>>> connect();
  // Keeps a connection on which nothing is going on.
  void put(std::shared_ptr<UpstreamConnection> connection);
  // Closes what has been idle for too long.
  void sweep(Clock::time_point now);
  void close_idle() { idle_.clear(); }

  [[nodiscard]] const UpstreamOptions& options() const { return options_; }
  [[nodiscard]] std::size_t idle() const { return idle_.size(); }

 private:
  Task<Result<std::shared_ptr<UpstreamConnection>>> connect_one_of(
      std::span<const asio::ip::tcp::endpoint> endpoints, Deadline deadline);

  ProxyLoop& loop_;
  UpstreamOptions options_;
  std::optional<net::TlsContext> tls_;
  std::deque<std::shared_ptr<UpstreamConnection>> idle_;  // oldest first
};

}  // namespace gitops::proxy
