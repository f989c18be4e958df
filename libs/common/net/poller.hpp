#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <sys/epoll.h>

#include "common/core/async.hpp"

namespace gitops::net {

// What a Poller tells about one socket. `ready` says that the last attempt may not have found
// everything; whoever reads or writes and finds nothing more sets it to false.
struct Readiness {
  bool ready = false;
  std::move_only_function<void()> waiter;  // resumed once by the next event
};

struct PolledSocket {
  int fd = -1;
  bool hung_up = false;        // the peer closed its side, or the connection broke
  const void* user = nullptr;  // what its waiter will work on; only fetched ahead, never read
  Readiness read;
  Readiness write;
};

// Tells many sockets' readiness edge-triggered through one epoll instance of its own, which the
// loop watches as one descriptor. A socket costs a system call when it is added and none per wait,
// where Asio re-arms it (or tries a read in vain) each time; for a proxy that is an eighth of its
// time. Loop thread only; outlives its sockets.
class Poller {
 public:
  explicit Poller(const Executor& executor);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void add(PolledSocket& socket);
  // Forgets it; its waiters are not called. The caller closes the descriptor.
  void remove(PolledSocket& socket);

  // To be awaited at once: suspends until the next event, or until wake(); also ends when the
  // coroutine is cancelled. The caller looks at its condition again.
  auto wait(Readiness& readiness) {
    return asio::async_initiate<const asio::deferred_t&, void()>(
        [this, &readiness](auto handler) {
          if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
            slot.assign([this, &readiness](asio::cancellation_type) { wake(readiness); });
          }
          readiness.waiter = std::move(handler);
        },
        asio::deferred);
  }
  // The time, read once for everything that was found ready together; exact outside of that.
  [[nodiscard]] Clock::time_point now() const { return event_count_ > 0 ? now_ : Clock::now(); }
  // Resumes who waits, from the loop.
  void wake(Readiness& readiness);

 private:
  void arm();
  void collect();
  bool deliver();

  Executor executor_;
  asio::posix::basic_stream_descriptor<Executor> epoll_;
  std::size_t sockets_ = 0;
  bool armed_ = false;
  std::array<epoll_event, 128> events_;
  std::size_t event_count_ = 0;  // of those being delivered
  Clock::time_point now_{};      // when they were found
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace gitops::net
