#pragma once

#include "common/core/async.hpp"
#include "common/net/buffer.hpp"
#include "common/net/poller.hpp"
#include "common/net/timer_wheel.hpp"

namespace gitops::net {

// Shared resources of all channels of one loop: the poller, the timer wheel of their deadlines, and
// blocks of memory. A service of the loop, made on first use; it lives as long as the loop. Loop
// thread only.
class Reactor : public asio::execution_context::service {
 public:
  static inline asio::execution_context::id id;

  static Reactor& of(const Executor& executor) {
    return asio::use_service<Reactor>(executor.context());
  }

  explicit Reactor(Loop& loop)
      : asio::execution_context::service(loop),
        executor(loop.get_executor()),
        wheel(executor),
        poller(executor) {}

  [[nodiscard]] Clock::time_point now() const { return poller.now(); }

  const Executor executor;
  TimerWheel wheel;
  Poller poller;
  BlockPool blocks;

 private:
  void shutdown() override {}
};

}  // namespace gitops::net
