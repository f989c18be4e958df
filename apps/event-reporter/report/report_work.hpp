#pragma once

#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/trace.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/dirty_set.hpp"

namespace gitops::reporter {

// One attempt to report an object.
struct ReportAttempt {
  unsigned failures = 0;  // failed attempts in a row before it
  // A wait beside the reads of the attempt; its return cancels the reads: they take long, and other
  // slow objects hold the workers for those. The attempt then ends with any Error and is repeated
  // when a worker is free for it. Empty: the reads have no such limit.
  std::function<Task<>()> until_reads_must_end = {};
  SpanContext trace = {};  // of the report
};

// Reports objects of one kind. An Error means that an event is still due. Only one call for an object
// may run at a time.
class ObjectReporter {
 public:
  virtual ~ObjectReporter() = default;
  // Reports the deletion of the object; `tombstone` is its last known JSON.
  virtual Task<Result<void>> report_gone(Grant grant, std::string key, std::string tombstone) = 0;
  // Reports the deletion of a predecessor: another object with the same name, of which only the uid
  // is known.
  virtual Task<Result<void>> report_predecessor(Grant grant, std::string key, std::string uid) = 0;
  // Reports the oldest of the work's states, or the newest state, which is read, when there are
  // none. Returns false when there was no such object to read.
  virtual Task<Result<bool>> report_state(Grant grant, const std::string& key,
                                          const DirtyWork& work, const ReportAttempt& attempt) = 0;
  // Reports deletions without a watch event that only this process knows, and records a state that
  // another replica reports now. Called after all other work.
  virtual Task<Result<void>> report_missed(Grant grant, std::string key, const DirtyWork& work) = 0;
};

// Returns the error of a report whose grant has ended.
[[nodiscard]] Error grant_ended();

// Reports the deletion of the object, the deletions of its predecessors, and its states, in this
// order, and removes the reported items from `work`. States stay without the grant of an owner.
// Fails while the object's shard is being taken over, and when it changed hands meanwhile.
Task<Result<void>> report_work(ChangeTracker& changes, ObjectReporter& reporter,
                               const std::string& key, DirtyWork& work, ReportAttempt attempt);

}  // namespace gitops::reporter
