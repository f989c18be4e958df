#pragma once

#include <exception>
#include <thread>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include "common/core/async.hpp"

namespace gitops {

// An additional loop on its own thread, for programs that serve on several loops
// (docs/adr/0008-several-loops.md). An uncaught exception ends the process, as on the daemon's own
// loop. Create, stop and destroy it on one thread; the executor may be used on any thread.
class LoopThread {
 public:
  LoopThread();
  ~LoopThread() { stop(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  [[nodiscard]] Executor executor() { return loop_.get_executor(); }
  // Ends the thread after the current handler. Stop the objects that live on the loop first.
  void stop();

 private:
  void run();

  Loop loop_{1};
  asio::executor_work_guard<Executor> work_{loop_.get_executor()};
  std::jthread thread_;
};

// Runs the coroutine `work` on another loop and resumes on this one when it has ended; it must not
// fail. Started work is not interrupted: after a cancellation of the awaiting coroutine, the wait
// still ends only with the work.
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

}  // namespace gitops
