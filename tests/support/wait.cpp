#include "support/wait.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using RealClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kFirstPoll = milliseconds(1);
constexpr auto kMaxPoll = milliseconds(50);
constexpr auto kMaxPollInTestTime = milliseconds(5);
constexpr Clock::duration kLimit = std::chrono::seconds(30);
constexpr Clock::duration kLimitInTestTime = std::chrono::minutes(10);

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // set by signal handlers

// The growing pause between two polls.
class PollPeriod {
 public:
  Clock::duration next() {
    const auto max = test_time_runs() ? kMaxPollInTestTime : kMaxPoll;
    const auto now = next_;
    next_ = std::min<milliseconds>(2 * next_, max);
    return now;
  }

 private:
  milliseconds next_ = kFirstPoll;
};

testing::AssertionResult not_seen(const std::string& what, Clock::duration limit) {
  return testing::AssertionFailure()
         << "not seen within " << std::chrono::duration_cast<milliseconds>(limit).count()
         << " ms: " << what;
}

}  // namespace

Clock::duration default_limit() {
  return test_time_runs() ? kLimitInTestTime : kLimit;
}

Task<testing::AssertionResult> eventually(std::function<bool()> condition, std::string what,
                                          Clock::duration limit) {
  const Deadline deadline = deadline_after(limit);
  PollPeriod period;
  while (!condition()) {
    if (Clock::now() >= deadline) co_return not_seen(what, limit);
    co_await sleep_for(period.next());
  }
  co_return testing::AssertionSuccess() << "seen: " << what;
}

Task<testing::AssertionResult> eventually(std::function<Task<bool>()> condition, std::string what,
                                          Clock::duration limit) {
  const Deadline deadline = deadline_after(limit);
  PollPeriod period;
  while (!co_await condition()) {
    if (Clock::now() >= deadline) co_return not_seen(what, limit);
    co_await sleep_for(period.next());
  }
  co_return testing::AssertionSuccess() << "seen: " << what;
}

Task<testing::AssertionResult> eventually_while_clock_is_held(std::function<bool()> condition,
                                                              std::string what) {
  const auto executor = co_await asio::this_coro::executor;
  const auto deadline = RealClock::now() + kLimit;
  while (!condition()) {
    if (RealClock::now() >= deadline) co_return not_seen(what, kLimit);
    std::this_thread::yield();
    co_await asio::post(executor, use_task);
  }
  co_return testing::AssertionSuccess() << "seen: " << what;
}

bool wait_until(const std::function<bool()>& predicate, milliseconds timeout, std::string_view what,
                milliseconds interval) {
  const auto deadline = RealClock::now() + timeout;
  while (!predicate()) {
    if (interrupted) throw std::runtime_error("interrupted");
    if (RealClock::now() >= deadline) {
      std::fprintf(stderr, "timed out after %lld ms waiting for %.*s\n",
                   static_cast<long long>(timeout.count()), static_cast<int>(what.size()),
                   what.data());
      return false;
    }
    std::this_thread::sleep_for(interval);
  }
  return true;
}

void require_until(const std::function<bool()>& predicate, milliseconds timeout,
                   std::string_view what, milliseconds interval) {
  if (!wait_until(predicate, timeout, what, interval)) {
    throw std::runtime_error("timed out waiting for " + std::string(what));
  }
}

void interrupt_waits() noexcept {
  interrupted = true;
}

}  // namespace gitops::test
