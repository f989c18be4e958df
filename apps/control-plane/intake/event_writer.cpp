#include "control-plane/intake/event_writer.hpp"

#include <deque>
#include <exception>
#include <new>
#include <tuple>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

namespace gitops::control_plane_server {
namespace {

// Time limit of one batch on the writer's thread. PostgreSQL's statements have lower limits of their own.
constexpr auto kBatchLimit = std::chrono::minutes(1);
// Events of store_all() at a time: fewer than a runtime may queue, so that its own find room.
constexpr std::size_t kAtATime = 64;
constexpr std::size_t kSmallEvent = 1024;  // bytes that an event without a body counts for
constexpr int kConflicts = 5;              // limit of consecutive conflicts of one batch

std::chrono::milliseconds retry_after(IntakeQueue::Refusal refusal) {
  return refusal == IntakeQueue::Refusal::runtime_is_full ? std::chrono::seconds(1)
                                                          : std::chrono::seconds(3);
}

std::string_view message_of(IntakeQueue::Refusal refusal) {
  switch (refusal) {
    case IntakeQueue::Refusal::runtime_is_full:
      return "too many events of this runtime are waiting";
    case IntakeQueue::Refusal::account_is_full:
      return "too many events of this account are waiting";
    case IntakeQueue::Refusal::queue_is_full:
    case IntakeQueue::Refusal::wait_is_long:
      return "too many events are waiting";
  }
  return {};
}

StoredEvent stored_event(const BatchOutcome::Item& item) {
  return {.outcome = item.outcome, .mark = item.mark};
}

// Returns whether an error may be caused by one event, not by the database. A conflict that remains after several tries
// is none with another replica.
bool is_of_an_event(const Error& error) {
  return error.code == ErrorCode::invalid_data || error.code == ErrorCode::internal ||
         error.code == ErrorCode::conflict;
}

// Stores a batch. An exception, which is a bug that some event shows, becomes an error, so that the other events are
// stored.
Result<BatchOutcome> store_guarded(EventStore& event_store, store::Connection& connection,
                                   const std::vector<Incoming>& batch) {
  try {
    return event_store.store(connection, batch);
  } catch (const std::bad_alloc&) {
    std::ignore = connection.run_script("ROLLBACK");
    return fail(ErrorCode::unavailable, "out of memory");
  } catch (const std::exception& error) {
    std::ignore = connection.run_script("ROLLBACK");
    return fail(ErrorCode::internal, error.what());
  }
}

}  // namespace

EventWriter::EventWriter(const Executor& executor, store::Database& database, Metrics& metrics,
                         Options options, std::function<void(std::int64_t)> changed)
    : database_(database),
      options_(std::move(options)),
      queue_(options_.queue),
      changed_(std::move(changed)),
      event_store_(make_event_store(database.engine(), options_.instance)),
      executor_(executor),
      queued_(executor),
      stored_(metrics.counter("gitops_control_plane_events_total", "Events that were acknowledged",
                              {{"outcome", "stored"}})),
      duplicates_(metrics.counter("gitops_control_plane_events_total",
                                  "Events that were acknowledged", {{"outcome", "duplicate"}})),
      stale_(metrics.counter("gitops_control_plane_events_total", "Events that were acknowledged",
                             {{"outcome", "stale"}})),
      refused_(metrics.counter("gitops_control_plane_events_refused_total",
                               "Events that could not be taken when they came")),
      failed_batches_(metrics.counter("gitops_control_plane_failed_batches_total",
                                      "Batches of events that could not be stored at once")),
      batch_size_(metrics.histogram("gitops_control_plane_batch_events", "Events in a batch",
                                    {1, 4, 16, 64, 256, 512})),
      batch_seconds_(metrics.histogram("gitops_control_plane_batch_seconds",
                                       "Time from the start of a batch to its commit",
                                       {0.001, 0.004, 0.016, 0.064, 0.25, 1, 4})),
      queued_events_(
          metrics.gauge("gitops_control_plane_queued_events", "Events that wait to be stored")),
      queued_bytes_(metrics.gauge("gitops_control_plane_queued_bytes",
                                  "Bytes of the events that wait to be stored")),
      tasks_(executor) {}

EventWriter::~EventWriter() = default;

void EventWriter::start() {
  tasks_.spawn("intake", [this] { return run(); });
}

Task<> EventWriter::stop(Deadline deadline) {
  stops_ = true;
  queued_.notify_all();
  while (!queue_.empty() && co_await queued_.wait(deadline)) {
  }
  tasks_.cancel();
  co_await tasks_.join();
  while (!queue_.empty()) {
    for (const auto& event : queue_.take_batch()) {
      complete(event, fail(ErrorCode::unavailable, "the control plane is stopping"));
    }
  }
}

Result<void> EventWriter::admit(std::int64_t account, std::string_view runtime, std::size_t bytes) {
  if (stops_) return fail(ErrorCode::unavailable, "the control plane is stopping");
  const auto refusal = queue_.refusal(account, runtime, bytes);
  if (!refusal) return {};
  refused_.Increment();
  return std::unexpected(Error{.code = ErrorCode::too_many_requests,
                               .message = std::string(message_of(*refusal)),
                               .retry_after = retry_after(*refusal)});
}

Task<Result<StoredEvent>> EventWriter::store(Incoming incoming, std::size_t bytes,
                                             Deadline deadline) {
  const auto& runtime = incoming.event.state.key.runtime;
  if (auto admitted = admit(incoming.account, runtime, bytes); !admitted) {
    co_return std::unexpected(std::move(admitted.error()));
  }
  const auto event = push(std::move(incoming), bytes);
  co_return co_await wait_for(*event, deadline);
}

Task<Result<void>> EventWriter::store_all(std::vector<Incoming> all, Deadline deadline) {
  std::deque<std::shared_ptr<PendingEvent>> waiting;
  for (auto& incoming : all) {
    if (waiting.size() >= kAtATime) {
      if (auto stored = co_await wait_for(*waiting.front(), deadline); !stored) {
        co_return std::unexpected(std::move(stored.error()));
      }
      waiting.pop_front();
    }
    if (auto admitted = admit(incoming.account, incoming.event.state.key.runtime, kSmallEvent);
        !admitted) {
      co_return std::unexpected(std::move(admitted.error()));
    }
    waiting.push_back(push(std::move(incoming), kSmallEvent));
  }
  for (const auto& event : waiting) {
    if (auto stored = co_await wait_for(*event, deadline); !stored) {
      co_return std::unexpected(std::move(stored.error()));
    }
  }
  co_return Result<void>{};
}

Task<Result<IntakeMark>> EventWriter::touch(EventStore::ReporterKey reporter,
                                            ReporterContact contact, Deadline deadline) {
  if (stops_) co_return fail(ErrorCode::unavailable, "the control plane is stopping");
  co_return co_await database_.with_writer(
      deadline, [event_store = event_store_, reporter = std::move(reporter),
                 contact = std::move(contact)](store::Connection& connection) {
        return event_store->touch(connection, reporter, contact);
      });
}

std::shared_ptr<PendingEvent> EventWriter::push(Incoming incoming, std::size_t bytes) {
  auto event = std::make_shared<PendingEvent>(executor_);
  queue_.push({.incoming = std::move(incoming), .bytes = bytes, .waiter = event});
  queued_events_.Set(static_cast<double>(queue_.size()));
  queued_bytes_.Set(static_cast<double>(queue_.bytes()));
  queued_.notify_all();
  return event;
}

Task<Result<StoredEvent>> EventWriter::wait_for(PendingEvent& event, Deadline deadline) {
  while (!event.outcome) {
    if (!co_await event.done.wait(deadline) && !event.outcome) {
      co_return fail(ErrorCode::timeout, "the event is not stored yet");
    }
  }
  co_return *event.outcome;
}

Task<> EventWriter::run() {
  while (true) {
    while (queue_.empty()) co_await queued_.wait();
    auto batch = queue_.take_batch();
    queued_events_.Set(static_cast<double>(queue_.size()));
    queued_bytes_.Set(static_cast<double>(queue_.bytes()));
    const auto began = Clock::now();
    batch_size_.Observe(static_cast<double>(batch.size()));
    const auto events = batch.size();
    co_await store_batch(std::move(batch));
    const auto time = Clock::now() - began;
    if (last_error_.empty()) queue_.note_stored(events, time);
    batch_seconds_.Observe(std::chrono::duration<double>(time).count());
    if (stops_) queued_.notify_all();
  }
}

Task<> EventWriter::store_batch(std::vector<QueuedEvent> batch) {
  std::vector<Incoming> incoming;
  incoming.reserve(batch.size());
  for (auto& event : batch) incoming.push_back(std::move(event.incoming));
  const auto events = std::make_shared<const std::vector<Incoming>>(std::move(incoming));
  const auto outcome = co_await store_once(events);
  if (!outcome && batch.size() > 1 && is_of_an_event(outcome.error())) {
    co_await store_one_by_one(std::move(batch), events);
    co_return;
  }
  if (batch.size() == 1) {
    finish_one(batch.front(), events->front(), outcome);
    co_return;
  }
  note(outcome);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (outcome) failures_.add_stored((*events)[i]);
    complete(batch[i], outcome ? Result<StoredEvent>(stored_event(outcome->items[i]))
                               : Result<StoredEvent>(std::unexpected(outcome.error())));
  }
}

// Stores a batch. Repeats it after a lost connection, whose COMMIT may have been executed, and after a conflict with
// another replica about a new object.
Task<Result<BatchOutcome>> EventWriter::store_once(Events events) {
  bool was_lost = false;
  for (int conflicts = 0;;) {
    auto outcome = co_await database_.with_writer(
        deadline_after(kBatchLimit),
        [events, event_store = event_store_](store::Connection& connection) {
          return store_guarded(*event_store, connection, *events);
        });
    const bool is_lost = !outcome && outcome.error().code == ErrorCode::unavailable && !was_lost;
    const bool is_conflict =
        !outcome && outcome.error().code == ErrorCode::conflict && ++conflicts <= kConflicts;
    if (!is_lost && !is_conflict) co_return outcome;
    was_lost = was_lost || is_lost;
    failed_batches_.Increment();
  }
}

Task<> EventWriter::store_one_by_one(std::vector<QueuedEvent> batch, Events events) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto one = std::make_shared<const std::vector<Incoming>>(1, (*events)[i]);
    finish_one(batch[i], one->front(), co_await store_once(one));
  }
}

// Reports the outcome of an event that was stored alone.
void EventWriter::finish_one(const QueuedEvent& event, const Incoming& incoming,
                             Result<BatchOutcome> outcome) {
  using Verdict = EventFailures::Verdict;
  if (outcome) {
    failures_.add_stored(incoming);
    note(outcome);
    return complete(event, stored_event(outcome->items.front()));
  }
  auto error = std::move(outcome.error());
  const bool is_refused = error.code == ErrorCode::invalid_data;
  const auto verdict =
      !is_refused && is_of_an_event(error) ? failures_.add(incoming) : Verdict::unknown;
  if (verdict == Verdict::permanent) error.subcode = kEventCannotBeStored;
  if (is_refused || verdict != Verdict::unknown) {
    failed_batches_.Increment();  // others are stored: the database is well
  } else {
    note(std::unexpected(error));
  }
  complete(event, std::unexpected(std::move(error)));
}

void EventWriter::note(const Result<BatchOutcome>& outcome) {
  if (outcome) {
    last_error_.clear();
    bool is_visible = false;
    for (const auto& item : outcome->items) is_visible = is_visible || item.is_visible;
    if (is_visible && changed_) changed_(outcome->last_change);
    return;
  }
  failed_batches_.Increment();
  last_error_ = outcome.error().message;
  if (repeated_.check(last_error_, Clock::now()).pass) {
    log_.error("events cannot be stored", {{"error", last_error_}});
  }
}

void EventWriter::complete(const QueuedEvent& event, Result<StoredEvent> outcome) {
  if (outcome) {
    switch (outcome->outcome) {
      case Outcome::stored:
        stored_.Increment();
        break;
      case Outcome::duplicate:
        duplicates_.Increment();
        break;
      case Outcome::stale:
        stale_.Increment();
        break;
    }
  } else {
    refused_.Increment();
  }
  if (!event.waiter) return;
  event.waiter->outcome = std::move(outcome);
  event.waiter->done.notify_all();
}

}  // namespace gitops::control_plane_server
