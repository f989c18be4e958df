#include "support/run_coro.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <optional>

namespace gitops {
namespace {

using Timers = asio::detail::deadline_timer_service<
    asio::detail::chrono_time_traits<Clock, asio::wait_traits<Clock>>>;

// Asio keeps the queue of its timers to itself; an explicit instantiation may name it nevertheless.
template <auto queue>
struct TimerQueue {
  friend asio::detail::timer_queue_base& queue_of(Timers& timers) { return timers.*queue; }
};
asio::detail::timer_queue_base& queue_of(Timers& timers);
template struct TimerQueue<&Timers::timer_queue_>;

}  // namespace

// Drives Clock for a test, for the lifetime of the object.
class TestTime {
 public:
  explicit TestTime(Loop& loop) : loop_(loop), timers_(queue_of(asio::use_service<Timers>(loop))) {
    Clock::stop_at(Clock::now());
    runs_ = true;
  }
  ~TestTime() {
    runs_ = false;
    Clock::run();
  }
  TestTime(const TestTime&) = delete;
  TestTime& operator=(const TestTime&) = delete;

  static bool runs() { return runs_; }

  // Runs ready handlers, or else advances the clock. False when the loop has no work left.
  bool turn() {
    if (loop_.poll_one() > 0) {
      idle_ = {};
      return true;
    }
    if (loop_.stopped()) return false;
    if (Clock::holds_ > 0) {
      loop_.run_one_for(std::chrono::milliseconds(1));
      return true;
    }
    // In growing steps up to the next timer: what the kernel passes on between sockets comes first.
    using Microseconds = std::chrono::duration<long, std::micro>;
    const auto most = std::chrono::floor<Microseconds>(
        std::clamp<Clock::duration>(idle_, std::chrono::milliseconds(1), std::chrono::minutes(1)));
    const Microseconds step(timers_.wait_duration_usec(most.count()));
    idle_ += step;
    Clock::stop_at(Clock::now() + step);
    if (step == most) return true;
    // Asio itself looks for timers that are due when a timer of the kernel fires.
    asio::detail::op_queue<asio::detail::operation> due;
    timers_.get_ready_timers(due);
    asio::use_service<asio::detail::scheduler>(loop_).post_deferred_completions(due);
    return true;
  }

 private:
  inline static bool runs_ = false;
  Loop& loop_;
  asio::detail::timer_queue_base& timers_;
  Clock::duration idle_{};
};

namespace test {
namespace {

using RealClock = std::chrono::steady_clock;

constexpr auto kClosing = std::chrono::milliseconds(500);

void run(const std::function<Task<>()>& body, RealClock::duration limit, bool in_test_time) {
  Loop loop(1);
  std::optional<TestTime> time;
  if (in_test_time) time.emplace(loop);
  // False when the loop has no work left or `until` has passed.
  const auto turn = [&](RealClock::time_point until) {
    if (time) return time->turn() && RealClock::now() < until;
    return loop.run_one_until(until) > 0;
  };

  bool ended = false;
  std::exception_ptr failure;
  asio::co_spawn(loop.get_executor(), body, [&](const std::exception_ptr& thrown) {
    ended = true;
    failure = thrown;
  });
  // In test time the limit is CPU time, so a busy machine fails no test.
  const auto began = std::clock();
  const auto until = RealClock::now() + (in_test_time ? 20 * limit : limit);
  constexpr unsigned kTurnsPerLook = 1024;  // reading CPU time is a system call
  for (unsigned turns = 1; !ended && turn(until); ++turns) {
    if (turns % kTurnsPerLook != 0) continue;
    const std::chrono::duration<double> ran(static_cast<double>(std::clock() - began) /
                                            CLOCKS_PER_SEC);
    if (in_test_time && ran > limit) break;
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
  // Closing takes a few turns of the loop, or waits for a function on a pool to return.
  const auto closing = Clock::now() + kClosing;
  const auto give_up = RealClock::now() + (in_test_time ? 20 * kClosing : kClosing);
  while ((!time || Clock::now() < closing) && turn(give_up)) {
  }
  if (!loop.stopped()) ADD_FAILURE() << "the coroutine left work on the loop behind";
}

}  // namespace

void run_coro(const std::function<Task<>()>& body, Clock::duration limit) {
  run(body, limit, false);
}

void run_in_test_time(const std::function<Task<>()>& body, RealClock::duration limit) {
  run(body, limit, true);
}

bool test_time_runs() {
  return TestTime::runs();
}

std::string describe(std::string_view expression, const Error& error) {
  return std::string(expression) + " failed: " + std::string(to_string(error.code)) + ": " +
         error.message;
}

}  // namespace test
}  // namespace gitops
