#include "event-reporter/report/report_queue.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <malloc.h>

namespace gitops::reporter {
namespace {

constexpr auto kTick = std::chrono::seconds(1);

}  // namespace

ReportQueue::ReportQueue(const Executor& executor, Delivery& delivery, Options options,
                         Handler report, Metrics& metrics)
    : delivery_(delivery),
      options_(std::move(options)),
      report_(std::move(report)),
      queue_(executor, options_.capacity),
      dirty_(queue_, options_.dirty),
      queue_size_(metrics.gauge("gitops_event_reporter_queue_size",
                                "Objects that wait in the queue, including delayed ones")),
      overdue_size_(metrics.gauge("gitops_event_reporter_overdue_objects",
                                  "Changed objects that wait for room in the queue")),
      oldest_dirty_(metrics.gauge("gitops_event_reporter_oldest_dirty_seconds",
                                  "Age of the oldest change that is not acknowledged yet")),
      report_seconds_(
          metrics.histogram("gitops_event_reporter_report_seconds",
                            "Time from an object's change to the acknowledgement of all its events",
                            {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300})) {
  delivery_.on_recovery([this] { dirty_.bring_forward(); });
}

void ReportQueue::start(TaskGroup& group) {
  group.spawn("queue", [this] { return tick(); });
  for (std::size_t i = 0; i < options_.workers; ++i) {
    group.spawn("worker", [this] { return work(); });
  }
}

Task<> ReportQueue::work() {
  while (co_await queue_.wait()) {
    co_await delivery_.ready();
    const auto key = queue_.take();
    if (!key) continue;
    dirty_.refill();
    auto work = dirty_.take(*key);
    const auto since = work.since;
    const bool any = !work.empty();
    const auto failures = backoffs_.contains(*key) ? backoffs_.at(*key).attempts() : 0U;
    const auto outcome = co_await report_(*key, work, failures);
    if (outcome) {
      backoffs_.erase(*key);
      dirty_.done(*key);
      if (any) {
        const std::chrono::duration<double> took = Clock::now() - since;
        report_seconds_.Observe(took.count());
        ++reported_;
        log_.debug(options_.object + " reported",
                   {{options_.object, *key}, {"took_ms", std::llround(took.count() * 1000)}});
      }
      queue_.done(*key);
      continue;
    }
    dirty_.give_back(*key, std::move(work));
    if (delivery_.breaker().state() != Breaker::State::closed) {
      queue_.retry(*key, Clock::duration::zero());  // the worker then waits for ready()
      continue;
    }
    auto& backoff = backoffs_.try_emplace(*key, options_.backoff, random_seed()).first->second;
    const auto delay = backoff.next(outcome.error().retry_after);
    log_failure(*key, outcome.error(), delay);
    queue_.retry(*key, delay);
  }
}

Task<> ReportQueue::tick() {
  while (true) {
    dirty_.refill();
    queue_size_.Set(static_cast<double>(queue_.size()));
    overdue_size_.Set(static_cast<double>(dirty_.overdue()));
    oldest_dirty_.Set(std::chrono::duration<double>(dirty_.oldest(Clock::now())).count());
    give_memory_back();
    co_await sleep_for(kTick);
  }
}

bool ReportQueue::heartbeat_due() {
  const auto now = Clock::now();
  const auto last = std::max(delivery_.last_acknowledgement(), last_heartbeat_);
  if (now - last < options_.heartbeat) return false;
  last_heartbeat_ = now;
  return true;
}

// Returns free memory to the system after many reports, whose texts fragment the heap. It takes time
// that grows with the heap, and the next reports allocate again, so it waits for a quiet second.
void ReportQueue::give_memory_back() {
  constexpr std::size_t kMany = 500;
  const bool quiet = std::exchange(reported_before_, reported_) == reported_;
  if (reported_ < kMany || !quiet || queue_.size() + queue_.in_work() > 0) return;
  reported_ = 0;
  reported_before_ = 0;
  malloc_trim(0);
}

void ReportQueue::log_failure(std::string_view key, const Error& error, Clock::duration delay) {
  const auto verdict = repeats_.check(error.message, Clock::now());
  if (!verdict.pass) return;
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(delay);
  log_.warning("a report failed and will be tried again", {{options_.object, key},
                                                           {"code", to_string(error.code)},
                                                           {"reason", error.message},
                                                           {"retry_in_ms", millis.count()},
                                                           {"suppressed", verdict.suppressed}});
}

std::string ReportQueue::status() const {
  const auto age =
      std::chrono::duration_cast<std::chrono::milliseconds>(dirty_.oldest(Clock::now()));
  return "queue: " + std::to_string(queue_.size()) + " of " + std::to_string(queue_.capacity()) +
         " waiting, " + std::to_string(queue_.in_work()) + " in work, " +
         std::to_string(dirty_.overdue()) +
         " overdue\noldest unacknowledged change: " + format_duration(age) + "\n";
}

}  // namespace gitops::reporter
