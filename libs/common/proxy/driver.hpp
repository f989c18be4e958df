#pragma once

#include <memory>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/wire_text.hpp"
#include "common/net/channel.hpp"
#include "common/proxy/exchange.hpp"
#include "common/proxy/upstream.hpp"

namespace gitops::proxy {

// What the connections of one server share. Loop thread only; outlives them.
struct DriverContext {
  DriverContext(net::Reactor& r, Policy p)
      : reactor(r), policy(std::move(p)), exchanges{r.blocks} {}

  // Exchanges are lent last-in-first-out, so that the next request finds its memory in the CPU's
  // caches; a connection without a request has none.
  [[nodiscard]] std::unique_ptr<Exchange> lend();
  void take_back(std::unique_ptr<Exchange> exchange);

  net::Reactor& reactor;
  Policy policy;
  ExchangeContext exchanges;
  std::chrono::milliseconds idle_timeout{65'000};  // between requests
  http::DateField date;

 private:
  std::vector<std::unique_ptr<Exchange>> spare_;
};

// The requests of one client's connection, one after the other: does what their exchanges ask for.
// Loop thread only.
class Driver {
 public:
  Driver(DriverContext& context, std::unique_ptr<net::Channel> client, PeerInfo peer);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Until the client is done, or closed; the channel is closed afterwards.
  Task<> run();
  // No request is under way: may be closed at any time.
  [[nodiscard]] bool idle() const { return idle_; }
  void close() { client_->close(); }

 private:
  Task<bool> wait_for_request();
  // Until the exchange is finished.
  Task<> serve();
  Task<> get_upstream(Exchange& exchange);
  Task<> relay(Exchange& exchange);
  bool move_bytes(Exchange& exchange);
  [[nodiscard]] bool write_to(net::Channel& channel, const Outgoing& out, net::Transfer& written);
  void set_deadlines(const Exchange::Deadlines& deadlines);
  // Gives the upstream back and records the request; what is to become of the client.
  Exchange::ClientEnd end(Exchange& exchange);

  DriverContext& context_;
  std::unique_ptr<net::Channel> client_;
  const PeerInfo peer_;
  net::Buffer in_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<UpstreamConnection> upstream_;
  bool idle_ = true;
};

}  // namespace gitops::proxy
