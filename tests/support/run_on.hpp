#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/core/async.hpp"

namespace gitops::test {

// Runs `function` on a thread of the pool and resumes on the loop with its result or exception.
// The wait ends only with the function, even if the awaiting coroutine is cancelled, so `function`
// may use variables of that coroutine. It must not touch anything else that belongs to the loop.
// For tests only, where blocking calls end; programs use WorkerPool.
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

}  // namespace gitops::test
