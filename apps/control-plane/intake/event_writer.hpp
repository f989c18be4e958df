#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/store/database.hpp"
#include "control-plane/intake/event_failures.hpp"
#include "control-plane/intake/intake_queue.hpp"

namespace gitops::control_plane_server {

// An event that was committed.
struct StoredEvent {
  Outcome outcome = Outcome::stored;
  std::optional<IntakeMark> mark = {};  // to be told to the reporter
};

// A request that waits until its event is committed.
struct PendingEvent {
  explicit PendingEvent(const Executor& executor) : done(executor) {}
  std::optional<Result<StoredEvent>> outcome;
  gitops::Event done;
};

// Subcode of an event that can never be stored: storing it alone has failed several times, while other events were
// stored. It is not the state of the database, as in an outage.
inline constexpr std::string_view kEventCannotBeStored = "event_cannot_be_stored";

// The only writer of a process. It takes the queued events as a batch, stores them in one transaction, and reports the
// outcome to each request after the commit. A batch collects the events that arrive during the previous commit; there
// is no timer. Loop thread only; call stop() before the destruction.
//
// A failed batch is stored event by event, so that one bad event does not affect the others. When the outcome of a
// commit is not known, the batch is stored again; the sequence of each object makes that safe.
class EventWriter {
 public:
  struct Options {
    IntakeQueue::Limits queue = {};
    std::string instance;  // names this process in the outbox
  };
  // `changed` is called on the loop after a commit with a visible change, with the highest number of the outbox.
  EventWriter(const Executor& executor, store::Database& database, Metrics& metrics,
              Options options, std::function<void(std::int64_t)> changed);
  ~EventWriter();

  void start();
  // Stores the queued events until the deadline. The remaining ones get the error unavailable.
  Task<> stop(Deadline deadline);

  // Returns the error of store() for an event of this runtime that cannot be queued now: too_many_requests with
  // retry_after, or unavailable while the program stops.
  Result<void> admit(std::int64_t account, std::string_view runtime, std::size_t bytes);
  // Waits until the event is committed or the deadline has passed. Errors: too_many_requests with retry_after (the
  // queue is full), unavailable with retry_after (the database cannot be written now), timeout (the event may still be
  // committed), invalid_data (the database refuses this event); any other with the subcode kEventCannotBeStored.
  Task<Result<StoredEvent>> store(Incoming incoming, std::size_t bytes, Deadline deadline);
  // Stores events without a body, some of them at a time. Errors are those of store(); the events before are stored.
  Task<Result<void>> store_all(std::vector<Incoming> all, Deadline deadline);

  // Records the contact of a reporter that has no event, and returns its mark. Errors: unavailable, timeout.
  Task<Result<IntakeMark>> touch(EventStore::ReporterKey reporter, ReporterContact contact,
                                 Deadline deadline);

  [[nodiscard]] const IntakeQueue& queue() const { return queue_; }
  // Returns the error of the last batch; empty while events can be stored.
  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  Task<> run();
  Task<> store_batch(std::vector<QueuedEvent> batch);
  using Events = std::shared_ptr<const std::vector<Incoming>>;  // shared with the writer's thread
  Task<Result<BatchOutcome>> store_once(Events events);
  Task<> store_one_by_one(std::vector<QueuedEvent> batch, Events events);
  void finish_one(const QueuedEvent& event, const Incoming& incoming, Result<BatchOutcome> outcome);
  void complete(const QueuedEvent& event, Result<StoredEvent> outcome);
  std::shared_ptr<PendingEvent> push(Incoming incoming, std::size_t bytes);
  static Task<Result<StoredEvent>> wait_for(PendingEvent& event, Deadline deadline);
  void note(const Result<BatchOutcome>& outcome);

  store::Database& database_;
  Options options_;
  IntakeQueue queue_;
  std::function<void(std::int64_t)> changed_;
  // Shared with the writer's thread, which may outlive this object.
  std::shared_ptr<EventStore> event_store_;
  Executor executor_;
  gitops::Event queued_;
  bool stops_ = false;
  EventFailures failures_;
  std::string last_error_;
  Log log_{"intake"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& stored_;
  Counter& duplicates_;
  Counter& stale_;
  Counter& refused_;
  Counter& failed_batches_;
  Histogram& batch_size_;
  Histogram& batch_seconds_;
  Gauge& queued_events_;
  Gauge& queued_bytes_;
  TaskGroup tasks_;
};

}  // namespace gitops::control_plane_server
