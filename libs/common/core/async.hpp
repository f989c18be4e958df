#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "common/core/error.hpp"
#include "common/core/time.hpp"

// The async frame: one loop thread per process, coroutines on it, and a pool for calls that block.
// docs/adr/0001-one-loop-thread.md. Sockets, timers and coroutines name the loop's executor type,
// so that no operation pays for a type-erased executor.
namespace gitops {

namespace asio = boost::asio;

using Loop = asio::io_context;
using Executor = Loop::executor_type;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

// A coroutine on the loop. References and views in its parameters are fine only when the caller
// awaits it at once; whatever is spawned takes values, or belongs to an object that outlives its
// TaskGroup.
template <class T = void>
using Task = asio::awaitable<T, Executor>;

inline constexpr asio::use_awaitable_t<Executor> use_task;

// Waits until `when`; kNever waits for cancellation. Cancellation throws operation_aborted.
Task<> sleep_until(Deadline when);
Task<> sleep_for(Clock::duration wait);

// Runs `work` for co_spawn. Asio 1.81 lets operation_aborted escape from the loop when a spawned
// coroutine is cancelled and ends without ever having waited, unless its last awaits do not throw.
template <class T>
Task<T> spawnable(Task<T> work) {
  std::optional<T> value;
  std::exception_ptr failure;
  try {
    value.emplace(co_await std::move(work));
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  if (failure) std::rethrow_exception(failure);
  co_return std::move(*value);
}

// Runs `work` and gives up at the deadline: it is then cancelled, awaited, and the result is
// ErrorCode::timeout. Cancellation from outside passes through to `work`. Costs a spawn and a
// timer; connections have deadlines of their own (net/channel.hpp), so hot paths do not need it.
template <class T>
Task<Result<T>> with_timeout(Deadline deadline, Task<Result<T>> work) {
  const auto executor = co_await asio::this_coro::executor;
  Timer timer(executor, deadline);
  auto both = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, spawnable(std::move(work)), asio::deferred),
      timer.async_wait(asio::deferred));
  auto [order, failure, result, timer_error] =
      co_await both.async_wait(asio::experimental::wait_for_one(), use_task);
  const bool expired = order[0] == 1 && !timer_error;
  if (expired) co_return fail(ErrorCode::timeout, "deadline passed");
  if (failure) std::rethrow_exception(failure);
  co_return std::move(result);
}

// Runs `function` on a thread of the pool and resumes on the loop with what it returned or threw.
// A started function is not interrupted: when the awaiting coroutine is cancelled, the wait still
// ends only with the function. `function` must not touch anything that belongs to the loop.
template <class Function>
Task<std::invoke_result_t<Function>> run_on(asio::thread_pool& pool, Function function) {
  using Value = std::invoke_result_t<Function>;
  using Slot = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;
  struct Outcome {
    std::optional<Slot> value;
    std::exception_ptr failure;
  };
  Outcome outcome;
  const auto executor = co_await asio::this_coro::executor;
  co_await asio::async_initiate<decltype(use_task), void()>(
      [&](auto handler) {
        asio::post(pool, [&outcome, executor, function = std::move(function),
                          work = asio::make_work_guard(executor), hold = Clock::Hold(),
                          handler = std::move(handler)]() mutable {
          try {
            if constexpr (std::is_void_v<Value>) {
              function();
              outcome.value.emplace();
            } else {
              outcome.value.emplace(function());
            }
          } catch (...) {
            outcome.failure = std::current_exception();
          }
          asio::post(executor, std::move(handler));
        });
      },
      use_task);
  if (outcome.failure) std::rethrow_exception(outcome.failure);
  if constexpr (!std::is_void_v<Value>) co_return std::move(*outcome.value);
}

// Runs the coroutine `work` on another loop and resumes on this one when it has ended; it must not
// fail. Started work is not interrupted: when the awaiting coroutine is cancelled, the wait still
// ends only with the work.
template <class Work>
Task<> run_on_loop(Executor other, Work work) {
  const auto executor = co_await asio::this_coro::executor;
  co_await asio::async_initiate<decltype(use_task), void()>(
      [&](auto handler) {
        asio::co_spawn(other, std::move(work),
                       [guard = asio::make_work_guard(executor),
                        handler = std::move(handler)](const std::exception_ptr& failure) mutable {
                         if (failure) std::rethrow_exception(failure);
                         asio::post(guard.get_executor(), std::move(handler));
                       });
      },
      use_task);
}

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
