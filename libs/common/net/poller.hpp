#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <sys/epoll.h>

#include "common/core/async.hpp"

namespace gitops::net {

// Resumes one waiting coroutine. A Direction points to the Waker of its waiting coroutine. A
// wake-up without a waiter is lost, so a coroutine checks its condition before it waits.
class Waker {
 public:
  // Await the result immediately. Suspends until wake(), post() or cancellation.
  auto wait(const Executor& executor) {
    return asio::async_initiate<const asio::deferred_t&, void()>(
        [this, executor](auto handler) {
          if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
            slot.assign([this, executor](asio::cancellation_type) { post(executor); });
          }
          waiter_ = std::move(handler);
        },
        asio::deferred);
  }
  // Prefetches the state of the waiter into the cache, ahead of wake(). A hint: the first word of
  // the function is the address of that state, and a prefetch of anything else has no effect.
  void prefetch() const {
    constexpr std::size_t kLine = 64;
    constexpr std::size_t kLines = 8;
    if (!waiter_) return;
    std::uintptr_t state = 0;
    std::memcpy(&state, &waiter_, sizeof state);
    for (std::size_t i = 0; i < kLines; ++i) {
      __builtin_prefetch(reinterpret_cast<const void*>(state + i * kLine));
    }
  }
  // Resumes the waiter before returning.
  void wake() {
    if (waiter_) std::exchange(waiter_, nullptr)();
  }
  // Resumes the waiter from the loop.
  void post(const Executor& executor) {
    if (waiter_) asio::post(executor, std::exchange(waiter_, nullptr));
  }

 private:
  std::move_only_function<void()> waiter_;
};

// Direction of a connection. `ready`: the next attempt to read or write may succeed. An attempt
// that would block sets it to false.
struct Direction {
  bool ready = false;
  Waker* waker = nullptr;  // woken when the direction becomes ready
};

struct Readiness {
  Direction read;
  Direction write;
  bool hung_up = false;  // the peer closed its side, or the connection broke
};

struct PolledSocket : Readiness {
  int fd = -1;
};

// Watches the readiness of many sockets, edge-triggered, by one epoll instance of its own. The loop
// watches that instance as a single descriptor. A socket needs one system call when it is added and
// none per wait; Asio's own reactor re-arms a descriptor for each wait, or tries a read in vain.
// Loop thread only; it must outlive its sockets.
class Poller {
 public:
  explicit Poller(const Executor& executor);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void add(PolledSocket& socket);
  // Removes the socket without waking its waiters. The caller closes the descriptor.
  void remove(PolledSocket& socket);

  // Returns the current time; while events are delivered, the time of their collection.
  [[nodiscard]] Clock::time_point now() const { return event_count_ > 0 ? now_ : Clock::now(); }

 private:
  void arm();
  void collect();
  bool deliver();
  void fetch_ahead(std::size_t i) const;

  asio::posix::basic_stream_descriptor<Executor> epoll_;
  std::size_t sockets_ = 0;
  bool armed_ = false;
  std::array<epoll_event, 128> events_;
  std::size_t event_count_ = 0;  // of the events being delivered
  Clock::time_point now_{};      // time of their collection
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace gitops::net
