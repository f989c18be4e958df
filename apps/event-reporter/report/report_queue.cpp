#include "event-reporter/report/report_queue.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "common/core/race.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
// Time within which reports begin together, and share wake-ups, commits of the ledger and the
// cache.
constexpr auto kBatchPeriod = std::chrono::milliseconds(100);
// Longest interval of heartbeats for a control plane that tells a position with its acknowledgements: with
// them it asks for reports and for a resync. Its requests for reports end after ten minutes.
constexpr auto kMaxSilence = std::chrono::minutes(9);
// Delayed keys that bring_forward() releases in each tick.
constexpr std::size_t kForwardPerTick = 100;

}  // namespace

ReportQueue::ReportQueue(const Executor& executor, Delivery& delivery, Options options,
                         Metrics& metrics)
    : delivery_(delivery),
      options_(std::move(options)),
      slow_(options_.workers),
      queue_(executor, options_.capacity,
             {.is_slow = [this](const std::string& key) { return slow_.is_slow(key); },
              .has_place = [this] { return slow_.has_place(); }},
             kBatchPeriod),
      dirty_(queue_, options_.dirty),
      queue_size_(metrics.gauge("gitops_event_reporter_queue_size",
                                "Objects that wait in the queue, including delayed ones")),
      overdue_size_(metrics.gauge("gitops_event_reporter_overdue_objects",
                                  "Changed objects that wait for room in the queue")),
      slow_size_(metrics.gauge("gitops_event_reporter_slow_objects",
                               "Objects whose last report failed or took long; their reports hold "
                               "at most half of the workers")),
      oldest_dirty_(metrics.gauge("gitops_event_reporter_oldest_dirty_seconds",
                                  "Age of the oldest change that is not acknowledged yet")),
      report_seconds_(
          metrics.histogram("gitops_event_reporter_report_seconds",
                            "Time from an object's change to the acknowledgement of all its events",
                            {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300})) {
  delivery_.on_recovery([this] { dirty_.bring_forward(); });
}

void ReportQueue::start(TaskGroup& group, ChangeTracker& changes, ObjectReporter& reporter) {
  group.spawn("queue", [this] { return tick(); });
  for (std::size_t i = 0; i < options_.workers; ++i) {
    group.spawn("worker", [this, &changes, &reporter] { return work(changes, reporter); });
  }
}

Task<> ReportQueue::work(ChangeTracker& changes, ObjectReporter& reporter) {
  while (co_await queue_.wait()) {
    co_await delivery_.ready();
    const auto key = queue_.take();
    if (!key) continue;
    dirty_.refill();
    auto work = dirty_.take(*key);
    const auto since = work.since;
    const bool any = !work.empty();
    Running running{.never = Timer(co_await asio::this_coro::executor, kNever)};
    const auto outcome = co_await report(changes, reporter, *key, work, running);
    if (outcome) {
      backoffs_.erase(*key);
      dirty_.done(*key);
      if (any) {
        const std::chrono::duration<double> took = Clock::now() - since;
        report_seconds_.Observe(took.count());
        log_.debug(options_.object + " reported",
                   {{options_.object, *key}, {"took_ms", std::llround(took.count() * 1000)}});
      }
      queue_.done(*key);
      continue;
    }
    dirty_.give_back(*key, std::move(work));
    if (running.cancelled || running.gave_way) {
      queue_.retry(*key, Clock::duration::zero());  // a report that gave way waits for a permit
      continue;
    }
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

Task<Result<void>> ReportQueue::report(ChangeTracker& changes, ObjectReporter& reporter,
                                       const std::string& key, DirtyWork& work, Running& running) {
  slow_.begin(key);
  // Returns the permit, also after a cancelled attempt.
  struct Slot {
    SlowReports& slow;
    const std::string& key;
    const Running& running;
    bool failed = false;
    ~Slot() { slow.end(key, failed || running.slow); }
  } place{slow_, key, running};
  // The trace begins with the change that the watch told.
  Span span =
      options_.tracer == nullptr ? Span() : options_.tracer->begin("report " + options_.object);
  if (!work.empty()) span.began_at(work.since);
  span.set("k8s.object", key);
  const auto failures = backoffs_.contains(key) ? backoffs_.at(key).attempts() : 0U;
  ReportAttempt attempt{.failures = failures,
                        .until_reads_must_end = [&] { return until_reads_must_end(key, running); },
                        .trace = span.context()};
  auto outcome =
      co_await run(running, key, report_work(changes, reporter, key, work, std::move(attempt)));
  if (!outcome) span.fail(outcome.error().message);
  // All reports fail while the control plane takes no events.
  place.failed =
      !outcome && !running.cancelled && delivery_.breaker().state() == Breaker::State::closed;
  co_return outcome;
}

// Waits for cancellation unless the report must give way. The reads of the report count together.
Task<> ReportQueue::until_reads_must_end(const std::string& key, Running& running) {
  struct Reading {
    Running& running;
    Clock::time_point since = Clock::now();
    ~Reading() { running.reading += Clock::now() - since; }
  } const reading{running};
  // The reads mostly end first and cancel this wait. The timer avoids an exception for each report.
  Timer timer(co_await asio::this_coro::executor, deadline_after(kSlowAfter - running.reading));
  const auto [cancelled] = co_await timer.async_wait(asio::as_tuple(use_task));
  if (cancelled) co_return;
  running.slow = true;
  if (slow_.may_go_on(key)) co_await sleep_until(kNever);
  running.gave_way = true;
}

// Runs the report until it ends or cancel() selects its key.
Task<Result<void>> ReportQueue::run(Running& running, const std::string& key,
                                    Task<Result<void>> report) {
  struct Listed {
    Listed(std::unordered_map<std::string, Running*>& all, const std::string& key, Running& running)
        : list(all), at(all.insert_or_assign(key, &running).first) {}
    ~Listed() { list.erase(at); }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;
    std::unordered_map<std::string, Running*>& list;
    std::unordered_map<std::string, Running*>::iterator at;
  };
  const Listed listed(running_, key, running);
  const auto executor = co_await asio::this_coro::executor;
  auto both = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, spawnable(std::move(report)), asio::deferred),
      running.never.async_wait(asio::deferred));
  auto [order, failure, outcome, ended] =
      co_await both.async_wait(asio::experimental::wait_for_one(), use_task);
  if (!failure) co_return std::move(outcome);
  if (running.cancelled) co_return fail(ErrorCode::unavailable, "the report was cancelled");
  std::rethrow_exception(failure);
}

void ReportQueue::cancel(const KeyFilter& which) {
  for (const auto& [key, running] : running_) {
    if (!which(key)) continue;
    running->cancelled = true;
    running->never.cancel();
  }
}

Task<> ReportQueue::tick() {
  while (true) {
    if (forward_ > 0) {
      const auto released = dirty_.bring_forward(std::min(forward_, kForwardPerTick));
      forward_ = released == 0 ? 0 : forward_ - released;
    }
    dirty_.refill();
    queue_size_.Set(static_cast<double>(queue_.size()));
    overdue_size_.Set(static_cast<double>(dirty_.overdue()));
    slow_size_.Set(static_cast<double>(slow_.slow()));
    oldest_dirty_.Set(std::chrono::duration<double>(dirty_.oldest(Clock::now())).count());
    co_await sleep_for(kTick);
  }
}

bool ReportQueue::is_idle() const {
  return queue_.size() == queue_.delayed() && queue_.in_work() == 0 && dirty_.overdue() == 0 &&
         delivery_.breaker().state() == Breaker::State::closed;
}

bool ReportQueue::heartbeat_due() {
  const auto now = Clock::now();
  const auto last = std::max(delivery_.last_acknowledgement(), last_heartbeat_);
  const bool asks = !delivery_.history().position().empty();
  const auto interval = asks ? std::min<std::chrono::milliseconds>(options_.heartbeat, kMaxSilence)
                             : options_.heartbeat;
  if (now - last < interval) return false;
  last_heartbeat_ = now;
  return true;
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

StatusReport ReportQueue::status() const {
  StatusEntry queue{.name = "queue"};
  queue.add_count_of("waiting", queue_.size(), queue_.capacity());
  queue.add_count("in_work", queue_.in_work());
  queue.add_count("overdue", dirty_.overdue());
  StatusEntry slow{.name = "slow"};
  slow.add_count("objects", slow_.slow());
  slow.add_count_of("workers_in_use", slow_.held(), slow_.places(), "workers for them in use");
  StatusEntry oldest{.name = "oldest unacknowledged change"};
  oldest.add_duration(
      "age", std::chrono::duration_cast<std::chrono::milliseconds>(dirty_.oldest(Clock::now())),
      "");
  return {std::move(queue), std::move(slow), std::move(oldest)};
}

}  // namespace gitops::reporter
