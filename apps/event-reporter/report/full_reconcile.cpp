#include "event-reporter/report/full_reconcile.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <prometheus/counter.h>

#include "common/core/encoding.hpp"

namespace gitops::reporter {
namespace {

using std::chrono::milliseconds;

// The objects of a window are looked up at its beginning.
constexpr int kWindows = 1440;  // in an interval
// Shortest time between two objects, and between two checks of a busy queue.
constexpr auto kPause = milliseconds(100);
constexpr auto kBusyPause = std::chrono::seconds(1);

// Returns the remainder that is not negative.
milliseconds wrapped(milliseconds time, milliseconds interval) {
  return (time % interval + interval) % interval;
}

milliseconds since_epoch(auto time) {
  return std::chrono::duration_cast<milliseconds>(time.time_since_epoch());
}

}  // namespace

milliseconds reconcile_place(std::string_view key, milliseconds interval) {
  return milliseconds(fnv1a_32(key)) % interval;
}

FullReconcile::FullReconcile(ChangeTracker& changes, const ReportQueue& queue,
                             milliseconds interval, Metrics& metrics)
    : changes_(changes),
      queue_(queue),
      interval_(interval),
      reported_(metrics.counter("gitops_event_reporter_reconciled_total",
                                "Objects reported again by the full reconcile")) {}

Task<> FullReconcile::run() {
  // The wall clock is read once, so that a jump of it has no effect.
  phase_ = wrapped(since_epoch(wall_now()) - since_epoch(Clock::now()), interval_);
  const Clock::duration length = std::max<milliseconds>(interval_ / kWindows, kPause);
  auto begin = Clock::now() + interval_ / 24;
  while (true) {
    // The queue may have been busy for longer than the interval.
    begin = std::max(begin, Clock::now() - interval_);
    co_await sleep_until(begin);
    co_await report_window(begin, length);
    begin += length;
  }
}

// Reports the objects whose position is in the window.
Task<> FullReconcile::report_window(Clock::time_point begin, Clock::duration length) {
  const auto first = since_epoch(begin) + phase_;
  const auto after_begin = [&](std::string_view key) {
    return wrapped(reconcile_place(key, interval_) - first, interval_);
  };
  std::multimap<Clock::duration, std::string> due;
  for (const auto& key :
       changes_.owned_keys([&](std::string_view owned) { return after_begin(owned) < length; })) {
    due.emplace(after_begin(key), key);
  }
  for (const auto& [after, key] : due) {
    co_await sleep_until(begin + after);
    co_await until_idle();
    if (co_await changes_.report_again(key)) reported_.Increment();
    co_await sleep_for(kPause);
  }
}

Task<> FullReconcile::until_idle() {
  while (!queue_.is_idle()) co_await sleep_for(kBusyPause);
}

}  // namespace gitops::reporter
