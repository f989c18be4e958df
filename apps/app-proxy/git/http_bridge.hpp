#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/async.hpp"
#include "common/core/race.hpp"
#include "common/core/trace.hpp"
#include "common/core/wakeup.hpp"
#include "common/core/worker_pool.hpp"
#include "common/http/client.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {

// HTTP for a blocking thread: a job of a WorkerPool makes requests here, one after another, and the
// loop sends them with its http::Client. A blocking library thereby has the same proxies, trust,
// deadlines and pooled connections as all other code. docs/adr/0014-libgit2-on-our-http.md.
//
// Both sides hold it with std::shared_ptr. When the loop's side ends, at its deadline or by
// cancellation, the thread's calls fail at once. Holds at most 512 KiB of a body in each direction.
class HttpBridge {
 public:
  explicit HttpBridge(const Executor& executor) : executor_(executor) {}
  HttpBridge(const HttpBridge&) = delete;
  HttpBridge& operator=(const HttpBridge&) = delete;

  // Sends requests until it is cancelled. Each one has to make progress within `stall`. Loop
  // thread.
  Task<Result<void>> serve(http::Client& client, Deadline deadline, Clock::duration stall);
  // Makes requests spans of this work. Called before the first one, on either side.
  void belong_to(SpanContext trace) { trace_ = trace; }
  // Makes the thread's calls fail with `error` from now on, and serve() return. Any thread.
  void close(Error error);

  // The remaining functions are for the job's thread.

  // Starts a request. An unfinished one is dropped together with its connection. With a length, a
  // body of that length follows by write().
  Result<void> begin(http::Url url, http::Request request,
                     std::optional<std::uint64_t> length = {});
  // Sends more of the body, then its end.
  Result<void> write(std::string_view bytes);
  Result<void> finish();
  // Waits for the response's head.
  Result<http::Response> head();
  // Reads the next bytes of the body, at least one; 0 at the end.
  Result<std::size_t> read(std::span<char> buffer);
  // True once a byte of the present request may have left this process.
  bool was_sent();

 private:
  struct Current;  // a request, shared with the coroutine that sends it

  Task<Result<void>> carry_out(http::Client& client, std::shared_ptr<Current> current,
                               Deadline deadline, Clock::duration stall);
  Task<> until_changed(std::unique_lock<std::mutex>& lock);
  void wake_loop(std::unique_lock<std::mutex>& lock);

  const Executor executor_;
  SpanContext trace_;
  std::mutex mutex_;
  std::condition_variable changed_;  // notifies the thread
  std::shared_ptr<Wakeup> loop_;     // set while the loop waits for the thread
  std::shared_ptr<Current> current_;
  std::optional<Error> closed_;

  // Bytes of the body that the thread has taken and not returned yet. Job's thread only.
  std::string taken_;
  std::size_t returned_ = 0;
};

// Runs `job(bridge, stop)` on the pool while the loop serves the bridge, and resumes with its
// result. The job returns Result<T> with a default-constructible T. Errors: those of the job and of
// WorkerPool::run.
template <class Job>
auto run_with_http(WorkerPool& pool, std::string key, http::Client& client, Deadline deadline,
                   Clock::duration stall, Job job)
    -> Task<std::invoke_result_t<Job&, HttpBridge&, std::stop_token>> {
  using Answer = std::invoke_result_t<Job&, HttpBridge&, std::stop_token>;
  const auto executor = co_await asio::this_coro::executor;
  const auto bridge = std::make_shared<HttpBridge>(executor);
  auto call = [bridge, job = std::move(job)](const std::stop_token& stop) mutable {
    return job(*bridge, stop);
  };
  auto both = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, spawnable(pool.run(std::move(key), deadline, std::move(call))),
                     asio::deferred),
      asio::co_spawn(executor, spawnable(bridge->serve(client, deadline, stall)), asio::deferred));
  auto [order, failure, answer, serve_failure, served] =
      co_await both.async_wait(asio::experimental::wait_for_one(), use_task);
  bridge->close({.code = ErrorCode::unavailable, .message = "cancelled"});
  if (order[0] == 1 && serve_failure) std::rethrow_exception(serve_failure);
  if (failure) std::rethrow_exception(failure);
  co_return Answer(std::move(answer));
}

}  // namespace gitops::app_proxy
