#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "event-reporter/argo/gather.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/event/application_events.hpp"
#include "event-reporter/ledger/ledger_entry.hpp"
#include "event-reporter/report/change_tracker.hpp"

namespace gitops::reporter {

// An event of a report: of the object itself, or of one of its parts.
struct PlannedEvent {
  std::optional<ResourceId> part = {};  // absent: the object's own event
  Digest content{};                     // digest of the event; kGone: a deletion
  std::size_t index = 0;  // index in ApplicationEvents::resources(), unless it is gone
  // False for a heartbeat: the event was acknowledged before, and is sent again.
  bool is_new = true;

  [[nodiscard]] bool is_own() const { return !part; }
  [[nodiscard]] bool is_gone() const { return content == kGone; }
  bool operator==(const PlannedEvent&) const = default;
};

// The result of a report.
struct ReportEnd {
  bool stopped = false;             // ended before every event was tried
  bool erases = false;              // the deletion is complete: the ledger's entry must be erased
  std::optional<Error> error = {};  // the reason why the object stays due; absent: it does not

  [[nodiscard]] Result<void> result() const {
    return error ? Result<void>(std::unexpected(*error)) : Result<void>();
  }
};

// One report of an object, without I/O: the events to post, the object's entry in the ledger at each
// moment, and whether the object stays due. ReportRunner performs it:
//
//   1. announce(), then the entry is written to the ledger's file, and only then an event is posted;
//   2. the object's own event is posted first, then those of its parts; record() takes each outcome;
//   3. finish().
//
// No event is lost, since at each moment one of these states shows that it is due:
//
// - The entry has each new event, as announced and not acknowledged, before it is posted. It stays so
//   until the event is acknowledged, or gets the mark of one that was refused for good.
// - The entry has no `change`, by which a restart recognises a reported object, before every event was
//   acknowledged or refused for good and nothing is missing.
// - The entry is erased only after a deletion of which every event was acknowledged.
// - The report fails, and so the object stays dirty, unless every event was acknowledged or refused for
//   good and nothing is missing.
struct ReportPlan {
  // The last fields of the entry when the report is complete.
  struct Completion {
    std::optional<Digest> change = {};
    std::optional<Digest> tree = {};
    bool operator==(const Completion&) const = default;
  };

  explicit ReportPlan(LedgerEntry of) : entry(std::move(of)) {}

  LedgerEntry entry;                      // with the outcomes recorded so far
  std::vector<PlannedEvent> events = {};  // the object's own event is the first
  // The entry is written ahead of a heartbeat, too.
  bool writes_ahead = false;
  bool is_deletion = false;
  // There is nothing to do: the events were refused for good, and wait for Grant::retry_refused.
  bool waits = false;
  // There is nothing to post: the owner of the shard reports the deletion of an object that this
  // process never reported.
  bool left_to_owner = false;
  std::optional<Completion> completion = {};  // absent: the report cannot be complete
  // The reason why the object stays due even when every event was acknowledged: a part of it could
  // not be read.
  std::optional<Error> incomplete = {};

  // Returns whether any event is new.
  [[nodiscard]] bool announces() const;
  // Returns whether the entry must be written before the first post.
  [[nodiscard]] bool is_written_ahead() const { return writes_ahead || announces(); }
  // Announces the new events; `fresh` is the sequence of those that were not announced before.
  void announce(Sequence fresh);
  [[nodiscard]] Sequence sequence_of(const PlannedEvent& event) const;
  // Returns whether the event was refused for good before.
  [[nodiscard]] bool was_refused(const PlannedEvent& event) const;
  // Takes the outcome of a post. Returns false when no further event may be posted: the object's
  // own event failed.
  bool record(const PlannedEvent& event, const Result<Delivered>& outcome, WallTime now);
  // Returns whether the entry differs from the one that was saved last.
  [[nodiscard]] bool is_unsaved() const { return unsaved_; }
  void saved() { unsaved_ = false; }
  // Ends the report. Requires that every event was tried, or that record() returned false.
  [[nodiscard]] ReportEnd finish();

 private:
  bool unsaved_ = true;
  bool stopped_ = false;
  std::optional<Error> failure_ = {};  // failure of the first post that failed
  std::optional<Error> put_off_ =
      {};  // error of the last event that was refused and is to be retried
};

// Limits after which a report no longer waits for missing responses of Argo CD, and reports the
// known state.
struct WaitLimits {
  unsigned failures = 5;                                         // in a row
  std::chrono::milliseconds silence = std::chrono::seconds(10);  // since the oldest change
};
[[nodiscard]] bool waits_for_reads(const MissingParts& missing, bool in_deletion, unsigned failures,
                                   Clock::duration silence, const WaitLimits& limits);

// The known state of an application.
struct ApplicationFacts {
  std::string_view uid;
  Digest content{};  // digest of its own event
  Digest change{};   // change_digest() of its text
  std::span<const ApplicationEvents::Resource> resources = {};
  bool resources_known = true;
  bool lists_every_resource = true;  // resources that `resources` lacks are gone
  // The watch has delivered a newer state, whose report follows. A resource that was only noted, and
  // that `resources` lacks, may have come with that state.
  bool is_overtaken = false;
  std::optional<Digest> tree = {};  // digest of its resource tree
  bool lacks_commits = false;
  MissingParts missing = {};
};
// The share of the work that a report of an application has.
struct ReportScope {
  bool superseded = false;  // a newer state follows, and covers the events of the resources
  bool heartbeat = false;   // the application's event is due even without a change
  bool is_last = true;      // no further report of the same state follows
  Error why = {};           // reason of missing parts
};

// -- plans --
//
// `entry` is the object's, of this uid.

[[nodiscard]] ReportPlan plan_application(LedgerEntry entry, const ApplicationFacts& facts,
                                          const ReportScope& scope, const Grant& grant);
// Plans a report of the state of an object without parts, whose event has this content.
[[nodiscard]] ReportPlan plan_object(LedgerEntry entry, const Digest& content, bool heartbeat,
                                     const Grant& grant);
// Plans the deletion of an object and its parts.
[[nodiscard]] ReportPlan plan_deletion(LedgerEntry entry, const Grant& grant);
// Plans the deletion of parts that an object no longer has; `present` are the parts that it has.
[[nodiscard]] ReportPlan plan_lost_parts(LedgerEntry entry, const std::vector<ResourceId>& present,
                                         const Grant& grant);

}  // namespace gitops::reporter
