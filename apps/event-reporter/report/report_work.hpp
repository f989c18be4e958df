#pragma once

#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/dirty_set.hpp"

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

// Reports the deletion of the object, the deletions of its predecessors, and its states, in this
// order, and removes from `work` what was reported. States stay when the object's shard is not held.
Task<Result<void>> report_work(const ChangeTracker& changes, const std::string& key,
                               DirtyWork& work, const ReportSteps& steps);

}  // namespace gitops::reporter
