#include "support/run_coro.hpp"

namespace gitops::test {

void run_coro(const std::function<Task<>()>& body, Clock::duration limit) {
  Loop loop(1);
  bool ended = false;
  std::exception_ptr failure;
  asio::co_spawn(loop.get_executor(), body, [&](const std::exception_ptr& thrown) {
    ended = true;
    failure = thrown;
  });
  const Deadline deadline = deadline_after(limit);
  while (!ended && loop.run_one_until(deadline) > 0) {
  }
  if (!ended) {
    ADD_FAILURE() << "the coroutine did not end"
                  << (loop.stopped() ? ": nothing left that could resume it" : " in time");
    return;
  }
  if (failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "the coroutine threw: " << error.what();
    }
  }
  // Closing takes a few turns of the loop, or a function on a pool that is about to return.
  loop.run_for(std::chrono::milliseconds(500));
  if (!loop.stopped()) ADD_FAILURE() << "the coroutine left work on the loop behind";
}

std::string describe(std::string_view expression, const Error& error) {
  return std::string(expression) + " failed: " + std::string(to_string(error.code)) + ": " +
         error.message;
}

}  // namespace gitops::test
