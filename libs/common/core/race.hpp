#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include "common/core/async.hpp"

// Work with a deadline. Separate from async.hpp, since few sources need it and its headers are
// large.
namespace gitops {

// Runs `work` for co_spawn. Asio 1.81 lets operation_aborted escape from the loop when a spawned
// coroutine is cancelled and ends without ever having waited, unless its last awaits do not throw.
template <class T>
Task<T> spawnable(Task<T> work) {
  std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>> value;
  std::exception_ptr failure;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
    } else {
      value.emplace(co_await std::move(work));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  if (failure) std::rethrow_exception(failure);
  if constexpr (!std::is_void_v<T>) co_return std::move(*value);
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

}  // namespace gitops
