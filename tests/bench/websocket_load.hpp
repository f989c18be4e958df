#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/server.hpp"
#include "common/net/channel.hpp"

namespace gitops::bench {

// An upstream that sends back what comes through a WebSocket, and clients of it behind proxies. All
// of it runs within the calls, on the caller's thread.
class WebSocketLoad {
 public:
  static constexpr int kMessage = 64;  // bytes of payload

  WebSocketLoad();
  ~WebSocketLoad();
  WebSocketLoad(const WebSocketLoad&) = delete;
  WebSocketLoad& operator=(const WebSocketLoad&) = delete;

  // Of the upstream.
  [[nodiscard]] std::uint16_t port() const { return upstream_.port(); }

  using Clients = std::vector<std::unique_ptr<net::Channel>>;
  // Opens WebSockets through the proxy at `port`. Throws when one is refused.
  Clients connect(std::uint16_t port, int count);
  // Each client sends a message, waits until it is back, and sends the next one, for `time`. How
  // many came back.
  std::uint64_t play(Clients& clients, std::chrono::milliseconds time);

 private:
  void run(std::vector<Task<>> tasks);
  static Task<> echo(http::Exchange& exchange);

  Loop loop_{1};
  http::Server upstream_;
};

}  // namespace gitops::bench
