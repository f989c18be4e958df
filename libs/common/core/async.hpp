#pragma once

#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "common/core/error.hpp"
#include "common/core/time.hpp"

// The async frame: one loop thread per process and coroutines on it; calls that block run in a
// WorkerPool. docs/adr/0001-one-loop-thread.md. Sockets, timers and coroutines name the loop's
// executor type, so that no operation pays for a type-erased executor.
namespace gitops {

namespace asio = boost::asio;

using Loop = asio::io_context;
using Executor = Loop::executor_type;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

// A coroutine on the loop. References and views in its parameters are fine only when the caller
// awaits it at once; a spawned coroutine takes values, or belongs to an object that outlives its
// TaskGroup.
template <class T = void>
using Task = asio::awaitable<T, Executor>;

inline constexpr asio::use_awaitable_t<Executor> use_task;

// Waits until `when`; kNever waits for cancellation. Cancellation throws operation_aborted.
Task<> sleep_until(Deadline when);
Task<> sleep_for(Clock::duration wait);

// A condition variable for coroutines of one loop. Loop over the condition around wait().
class Event {
 public:
  explicit Event(const Executor& executor) : executor_(executor) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Resumes every coroutine that waits now.
  void notify_all();
  // Returns after a notify_all() (true) or at the deadline (false). Throws operation_aborted when
  // the waiting coroutine is cancelled.
  Task<bool> wait(Deadline deadline = kNever);

 private:
  struct Waiter;
  Executor executor_;
  std::vector<Waiter*> waiters_;
};

}  // namespace gitops
