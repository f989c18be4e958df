#include "event-reporter/report/requested_reports.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <prometheus/counter.h>

namespace gitops::reporter {
namespace {

// Time between two rounds: uids of other reporters come with every acknowledgement, and a look-up passes all objects.
constexpr auto kPause = std::chrono::milliseconds(500);
// The control plane forgets a request after this time.
constexpr auto kTimeLimit = std::chrono::minutes(10);
// Limits of memory for requests. An account has fewer that are open.
constexpr std::size_t kMaxHeard = 1'000;
constexpr std::size_t kMaxTaken = 10'000;

}  // namespace

RequestedReports::RequestedReports(const Executor& executor, ChangeTracker& changes,
                                   Metrics& metrics)
    : changes_(changes),
      asked_(executor),
      served_(metrics.counter("gitops_event_reporter_requested_reports_total",
                              "Objects that were reported again because the control plane asked")) {
}

void RequestedReports::take(const std::vector<control_plane::ReportRequest>& requests) {
  for (const auto& request : requests) {
    const auto taken = taken_.find(request.uid);
    if (taken != taken_.end() && request.number <= taken->second) continue;
    if (heard_.size() >= kMaxHeard && !heard_.contains(request.uid)) continue;
    auto& number = heard_[request.uid];
    number = std::max(number, request.number);
  }
  if (!heard_.empty()) asked_.notify_all();
}

Task<> RequestedReports::run() {
  while (true) {
    while (heard_.empty() && waiting_.empty()) co_await asked_.wait();
    const auto now = Clock::now();
    for (const auto& [uid, number] : std::exchange(heard_, {})) {
      accept({.uid = uid, .number = number}, now);
    }
    for (auto& waiting : std::exchange(waiting_, {})) {
      if (!co_await settle(waiting)) waiting_.push_back(std::move(waiting));
    }
    co_await sleep_for(kPause);
  }
}

void RequestedReports::accept(const control_plane::ReportRequest& request, Clock::time_point now) {
  const auto key = changes_.reported_key(request.uid);
  if (key.empty()) return;
  if (taken_.size() >= kMaxTaken && !taken_.contains(request.uid)) {
    // Numbers grow with time, so the lowest one is that of the request that ended first.
    taken_.erase(std::ranges::min_element(taken_, {}, [](const auto& one) { return one.second; }));
  }
  taken_[request.uid] = request.number;
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.uid == request.uid; });
  waiting_.push_back({.key = key, .uid = request.uid, .until = now + kTimeLimit});
}

// Returns whether nothing is left to do for the object.
Task<bool> RequestedReports::settle(const Waiting& waiting) {
  if (changes_.reported_key(waiting.uid) != waiting.key) {
    // Another replica has the shard now, and is asked, too. Forgotten here, so that this replica serves
    // the request if it gets the shard back.
    taken_.erase(waiting.uid);
    co_return true;
  }
  if (co_await changes_.report_again(waiting.key, ChangeTracker::Refusals::forgotten)) {
    served_.Increment();
    log_.info("the control plane asks for the events of an object again", {{"key", waiting.key}});
    co_return true;
  }
  if (Clock::now() < waiting.until) co_return false;
  log_.warning("an object is not reported again as the control plane asks: its report does not end",
               {{"key", waiting.key}});
  co_return true;
}

}  // namespace gitops::reporter
