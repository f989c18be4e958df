#include "event-reporter/report/report_plan.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "event-reporter/report/difference.hpp"

namespace gitops::reporter {
namespace {

Refused refused_of(const Grant& grant) {
  return grant.retry_refused ? Refused::retry : Refused::wait;
}

std::string identity_of_part(const PlannedEvent& event) {
  return event.part ? event.part->identity() : std::string();
}

// Returns whether the entry has the resource from the inventory alone: no event of it was announced in
// this term.
bool is_only_noted(const LedgerEntry& entry, const ResourceId& id) {
  const auto found = entry.resources.find(id.identity());
  return found != entry.resources.end() && found->second.last == LedgerPart{};
}

void add_deletions(ReportPlan& plan, const std::vector<ResourceId>& gone) {
  for (const auto& id : gone) plan.events.push_back({.part = id, .content = kGone});
}

}  // namespace

bool ReportPlan::announces() const {
  return std::ranges::any_of(events, &PlannedEvent::is_new);
}

void ReportPlan::announce(Sequence fresh) {
  for (const auto& event : events) {
    if (!event.is_new) continue;
    if (event.part) {
      entry.announce(*event.part, event.content, fresh);
    } else {
      entry.announce(event.content, fresh);
    }
  }
  unsaved_ = true;
}

Sequence ReportPlan::sequence_of(const PlannedEvent& event) const {
  if (event.part) return entry.resources.at(event.part->identity()).last.sequence;
  return entry.application ? entry.application->sequence : 0;
}

bool ReportPlan::was_refused(const PlannedEvent& event) const {
  return entry.is_refused(identity_of_part(event), event.content);
}

bool ReportPlan::record(const PlannedEvent& event, const Result<Delivered>& outcome, WallTime now) {
  if (!outcome) {
    if (!failure_) failure_ = outcome.error();
    stopped_ = stopped_ || event.is_own();
    return !stopped_;
  }
  const auto& error = outcome->error;
  if (outcome->kind == Delivered::Kind::put_off) {
    put_off_ = error;
    return true;
  }
  const bool refused = outcome->kind == Delivered::Kind::refused;
  if (event.is_own() && refused) {
    entry.refuse(error.http_status, now, error.message);
  } else if (event.is_own()) {
    entry.acknowledge(event.content);
  } else if (refused) {
    entry.refuse(*event.part, error.http_status, now, error.message);
  } else if (event.is_gone()) {
    entry.forget(*event.part);
  } else {
    entry.acknowledge(*event.part, event.content);
  }
  unsaved_ = true;
  return true;
}

ReportEnd ReportPlan::finish() {
  auto error = failure_ ? failure_ : put_off_;
  if (error) return {.stopped = stopped_, .error = std::move(error)};
  if (completion) {
    entry.change = completion->change;
    entry.tree = completion->tree;
    unsaved_ = true;
  }
  return {.erases = is_deletion && entry.refused.empty(), .error = incomplete};
}

bool waits_for_reads(const MissingParts& missing, bool in_deletion, unsigned failures,
                     Clock::duration silence, const WaitLimits& limits) {
  return missing.may_be_read() && !in_deletion && failures < limits.failures &&
         silence < limits.silence;
}

ReportPlan plan_application(LedgerEntry entry, const ApplicationFacts& facts,
                            const ReportScope& scope, const Grant& grant) {
  // A superseded state does not cover resources.
  const bool with_resources = facts.resources_known && !scope.superseded;
  auto due =
      diff(entry, facts.uid, facts.content,
           with_resources ? std::optional(facts.resources) : std::nullopt, refused_of(grant));
  // Resources that could not be read are not reported as deleted.
  if (!facts.lists_every_resource) due.gone.clear();
  std::erase_if(due.changed, [&](std::size_t index) { return !facts.resources[index].known; });
  const bool has_later_parts =
      facts.is_overtaken &&
      std::erase_if(due.gone, [&](const ResourceId& id) { return is_only_noted(entry, id); }) > 0;

  ReportPlan plan(std::move(entry));
  // A restart reports this application again until all events are acknowledged.
  plan.entry.change.reset();
  const bool heartbeat = scope.heartbeat && !plan.entry.is_refused({}, facts.content);
  if (due.application || heartbeat) {
    plan.events.push_back({.content = facts.content, .is_new = due.application});
  }
  for (const auto index : due.changed) {
    const auto& resource = facts.resources[index];
    plan.events.push_back({.part = resource.id, .content = resource.digest, .index = index});
  }
  add_deletions(plan, due.gone);

  // The rest of a superseded state comes with the newest one, which must not wait for it.
  if (scope.superseded) return plan;
  if (facts.missing.may_be_read()) {
    plan.incomplete = scope.why;
  } else if (scope.is_last) {
    plan.completion = ReportPlan::Completion{
        // The rest is reported with the next change of the Application after a failed comparison, and
        // with the state that has overtaken this one.
        .change = facts.missing.comparison || has_later_parts ? std::nullopt
                                                              : std::optional(facts.change),
        // Argo CD does not always return the managed resources of an application in deletion, and
        // may refuse the metadata of a commit. The next sweep then finds the tree changed, and
        // requests them again.
        .tree = facts.resources_known && !facts.lacks_commits ? facts.tree : std::nullopt};
  }
  return plan;
}

ReportPlan plan_object(LedgerEntry entry, const Digest& content, bool heartbeat,
                       const Grant& grant) {
  ReportPlan plan(std::move(entry));
  const bool due = !plan.entry.application || !plan.entry.application->has(content);
  plan.waits = due && plan.entry.is_refused({}, content) && !grant.retry_refused;
  if (plan.waits) return plan;
  plan.entry.change.reset();
  plan.completion = ReportPlan::Completion{.change = content};
  if (!due && !heartbeat) return plan;  // acknowledged before the entry could say so
  plan.writes_ahead = true;
  plan.events.push_back({.content = content, .is_new = due});
  return plan;
}

ReportPlan plan_deletion(LedgerEntry entry, const Grant& grant) {
  ReportPlan plan(std::move(entry));
  plan.is_deletion = true;
  plan.left_to_owner = !grant.owner && !plan.entry.was_announced();
  if (plan.left_to_owner) return plan;
  const auto due = diff_gone(plan.entry, refused_of(grant));
  plan.entry.change.reset();
  if (due.application) plan.events.push_back({.content = kGone});
  add_deletions(plan, due.gone);
  plan.waits = plan.events.empty() && !plan.entry.refused.empty();
  return plan;
}

ReportPlan plan_lost_parts(LedgerEntry entry, const std::vector<ResourceId>& present,
                           const Grant& grant) {
  std::set<std::string> identities;
  for (const auto& id : present) identities.insert(id.identity());
  auto due = diff_gone(entry, refused_of(grant));
  std::erase_if(due.gone, [&](const ResourceId& id) { return identities.contains(id.identity()); });
  ReportPlan plan(std::move(entry));
  plan.entry.change.reset();
  add_deletions(plan, due.gone);
  return plan;
}

}  // namespace gitops::reporter
