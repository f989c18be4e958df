#pragma once

#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/dirty_set.hpp"
#include "event-reporter/report/report_queue.hpp"

namespace gitops::reporter {

// How one kind of object is reported. An Error means that the event is still due.
struct ReportSteps {
  // The object was deleted.
  std::function<Task<Result<void>>(std::string tombstone)> deletion;
  // A predecessor was deleted: another object with the same name, of which only the uid is known.
  std::function<Task<Result<void>>(std::string uid)> predecessor;
  // The oldest of the work's states, or the newest state, which is to be read, when there are none.
  // False when there was no such object to read.
  std::function<Task<Result<bool>>()> state;
};

// The options with the hooks of the queue and of the delivery.
[[nodiscard]] ChangeTracker::Options with_queue(ChangeTracker::Options options, ReportQueue& queue,
                                                const Delivery& delivery);

// The error of a report that waits for the take-over of its object's shard.
[[nodiscard]] Error being_taken_over();
// The error of a report whose grant has ended.
[[nodiscard]] Error grant_ended();

// Reports the deletion of the object, the deletions of its predecessors, and its states, in this
// order, and removes from `work` what was reported. States stay without the grant of an owner.
Task<Result<void>> report_work(const ChangeTracker& changes, const Grant& grant,
                               const std::string& key, DirtyWork& work, const ReportSteps& steps);

}  // namespace gitops::reporter
