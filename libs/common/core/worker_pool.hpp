#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/wakeup.hpp"

namespace gitops {

namespace detail {
template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<Result<T>> {
  using Type = T;
};
}  // namespace detail

// A named, bounded pool of threads for calls that block: libgit2, SQLite, name lookups, long
// hashing. Each kind of blocking work has a pool of its own, so that none delays another. For any
// thread; coroutines of several loops may use one pool.
//
// A job takes a std::stop_token and returns T or Result<T>. It runs on a thread of the pool,
// touches nothing that belongs to a loop, and owns what it touches: a job that ignores its token
// may outlive the coroutine that waits for it, that coroutine's loop, and the pool.
//
// Jobs with the same key run one at a time, in the order they came; keys take turns. A key exists
// only while it has jobs.
//
// Metrics, labelled with the pool's name: gitops_worker_pool_busy_threads, _queued_jobs,
// _rejected_jobs_total.
class WorkerPool {
 public:
  struct Options {
    std::string name;
    std::size_t threads = 2;
    std::size_t max_queued = 64;   // jobs that wait for a thread or for their key
    std::size_t max_per_key = 16;  // of these, jobs behind the first of their key
  };
  template <class Function>
  using Value = detail::ValueOf<std::invoke_result_t<Function&, std::stop_token>>::Type;
  // A job is called exactly once: on a thread of the pool; or, when it was dropped before that,
  // with a stop requested on its token, on the thread that dropped it. It then does no work.
  using Job = std::move_only_function<void(std::stop_token)>;

  // Starts the threads. `metrics` outlives the pool.
  WorkerPool(Options options, Metrics& metrics);
  // Stops as stop() does with a grace of 2 s, unless stop() was called before.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs `function` and resumes on the caller's loop with its result or exception. Errors of the
  // pool: too_many_requests (it is full, or the key is), timeout (the deadline passed), unavailable
  // (it is stopping). A caller that gives up at its deadline or is cancelled requests a stop of the
  // job; a job that has not begun by then never runs.
  template <class Function>
  Task<Result<Value<Function>>> run(Deadline deadline, Function function) {
    return run_in(state_, {}, deadline, std::move(function));
  }
  template <class Function>
  Task<Result<Value<Function>>> run(std::string key, Deadline deadline, Function function) {
    return run_in(state_, std::move(key), deadline, std::move(function));
  }

  // Puts a job into the queue; run() uses it. `stop` requests its stop, by its owner or by the
  // pool. After an error the job is destroyed without having been called. An empty key is no key.
  Result<void> submit(std::stop_source stop, Job job, std::string key = {});
  // Drops the jobs in the queue whose stop was requested.
  void drop_stopped();

  // Refuses further jobs, drops those in the queue, asks the running ones to stop, and waits for
  // them; blocks the caller for at most `grace`. Returns the number of jobs that have not ended;
  // their threads are detached.
  std::size_t stop(Clock::duration grace);

  // Number of jobs of all pools of this process that stop() did not wait for and that still run.
  // While it is not zero, the process must end by end_process(): the jobs may use objects that
  // others destroy.
  static std::size_t left_behind();

 private:
  class State;  // shared with the threads
  template <class Function>
  struct Call;

  static Result<void> submit_to(State& state, std::string key, std::stop_source stop, Job job);
  static void drop_stopped_of(State& state);
  static void log_lost(const std::exception_ptr& failure);
  static std::unexpected<Error> too_late(const State& state);

  template <class Function>
  static Task<Result<Value<Function>>> run_in(std::shared_ptr<State> state, std::string key,
                                              Deadline deadline, Function function);

  std::shared_ptr<State> state_;
};

// The state that a job and the coroutine that waits for it share.
template <class Function>
struct WorkerPool::Call : Wakeup {
  Call(const Executor& executor, Function f) : Wakeup(executor), function(std::move(f)) {}

  void work(const std::stop_token& stop) {
    if (stop.stop_requested()) {
      result = fail(ErrorCode::unavailable, "the pool is stopping");
    } else {
      try {
        if constexpr (std::is_void_v<std::invoke_result_t<Function&, std::stop_token>>) {
          (*function)(stop);
          result.emplace();
        } else {
          result.emplace((*function)(stop));
        }
      } catch (...) {
        failure = std::current_exception();
      }
    }
    function.reset();  // frees its captures before the waiter continues
    if (!ring() && failure) log_lost(failure);
  }

  std::optional<Function> function;
  std::optional<Result<Value<Function>>> result;
  std::exception_ptr failure;
};

template <class Function>
Task<Result<WorkerPool::Value<Function>>> WorkerPool::run_in(std::shared_ptr<State> state,
                                                             std::string key, Deadline deadline,
                                                             Function function) {
  if (deadline <= Clock::now()) co_return too_late(*state);
  const auto call =
      std::make_shared<Call<Function>>(co_await asio::this_coro::executor, std::move(function));
  struct Leave {
    explicit Leave(std::shared_ptr<State> s) : state(std::move(s)) {}
    ~Leave() {
      if (ended) return;
      stop.request_stop();
      drop_stopped_of(*state);
    }
    Leave(const Leave&) = delete;
    Leave& operator=(const Leave&) = delete;
    std::shared_ptr<State> state;
    std::stop_source stop;
    bool ended = false;
  };
  Leave leave(state);
  auto queued =
      submit_to(*state, std::move(key), leave.stop,
                [call, hold = Clock::Hold()](const std::stop_token& stop) { call->work(stop); });
  leave.ended = !queued;
  if (!queued) co_return std::unexpected(std::move(queued.error()));
  leave.ended = co_await call->wait(deadline);
  if (!leave.ended) co_return too_late(*state);
  // Takes the exception out, so that this thread destroys it, not the last thread that has the
  // call.
  if (call->failure) std::rethrow_exception(std::exchange(call->failure, nullptr));
  co_return std::move(*call->result);
}

}  // namespace gitops
