#include "event-reporter/report/change_tracker.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <prometheus/counter.h>

#include "event-reporter/shards/shard.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kClaimRetry = std::chrono::seconds(1);
// Room above the limit, or above the floor of a claim, for many events of one object: half of the
// distance by which the next claim is at least higher.
constexpr Sequence kAboveLimit = std::chrono::microseconds(k8s::LeaseView::kLeastStep).count() / 2;

// The name of the note with the term in which a shard was held last is this, followed by the shard.
constexpr std::string_view kShardNote = "term of shard ";

std::string shard_note(std::uint32_t shard) {
  return std::string(kShardNote) + std::to_string(shard);
}

std::optional<Term> read_term(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  Term term = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), term);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return term;
}

// Returns whether the object's own event was refused for good. Those of its parts do not count.
bool is_own_refused(const LedgerHead& head) {
  return !head.refused.empty() && head.refused.front().part.empty();
}

// Makes every event due again, with a new sequence. The object stays deleted, and refused events stay
// refused.
void announce_again(LedgerEntry& entry) {
  const auto forget_sequence = [](LedgerPart& part) {
    part.sequence = 0;
    part.acknowledged = false;
  };
  if (entry.application) forget_sequence(*entry.application);
  for (auto& [identity, resource] : entry.resources) forget_sequence(resource.last);
}

}  // namespace

ChangeTracker::ChangeTracker(const Executor& executor, Ledger& ledger, ReportScheduler& reports,
                             TrackedObjects& objects, Options options, Metrics& metrics)
    : ledger_(ledger),
      reports_(reports),
      objects_(objects),
      dirty_(reports.dirty()),
      options_(options),
      claims_changed_(executor),
      peers_(executor, ledger, options_.inventory_retention,
             [&reports] { return reports.takes_events(); }),
      unchanged_(metrics.counter("gitops_event_reporter_unchanged_total",
                                 "Writes of objects without a change to report")) {}

void ChangeTracker::start(TaskGroup& group) {
  for (const auto& [key, head] : ledger_.known()) {
    if (!head.refused.empty()) retries_.insert(key);
  }
  for (const auto& [row, head] : ledger_.inventory()) {
    if (!head.refused.empty()) retries_.emplace(key_of_row(row));
  }
  ledger_.on_rebuilt([this] { report_all([](std::string_view) { return true; }); });
  peers_.start(group);
  group.spawn("claims", [this] { return take_claims(); });
}

std::uint32_t ChangeTracker::shard_of_key(std::string_view key) const {
  return reporter::shard_of_key(key, options_.replicas);
}

bool ChangeTracker::is_reported(const std::string& key, const Digest& digest) const {
  const auto known = ledger_.known().find(key);
  return known != ledger_.known().end() && known->second.change == digest &&
         !retries_.contains(key) && !to_compare_.contains(key);
}

bool ChangeTracker::may_lose_parts(std::string_view key) const {
  return objects_.have_parts() && ledger_.known().contains(std::string(key));
}

bool ChangeTracker::knows(const std::string& key, std::string_view uid) const {
  const auto known = ledger_.known().find(key);
  return (known != ledger_.known().end() && known->second.uid == uid) ||
         ledger_.inventory().contains(inventory_row(key, uid));
}

std::optional<Digest> ChangeTracker::seen_state(const std::string& key) const {
  const auto seen = seen_.find(key);
  return seen == seen_.end() ? std::nullopt : std::optional(seen->second);
}

std::size_t ChangeTracker::owned() const {
  std::size_t count = 0;
  for (const auto& [shard, seen] : seen_in_) {
    if (holds(shard)) count += seen;
  }
  return count;
}

bool ChangeTracker::holds(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found != shards_.end() && found->second.held;
}

std::optional<Grant> ChangeTracker::grant(std::string_view key) const {
  const auto shard = shard_of_key(key);
  const auto found = shards_.find(shard);
  const auto state = found == shards_.end() ? ShardState{} : found->second;
  if (state.claimed && !state.held) return std::nullopt;
  return Grant{.shard = shard,
               .period = state.period,
               .owner = state.held,
               .floor = state.floor,
               .retry_refused = retries_.contains(std::string(key))};
}

bool ChangeTracker::holds(const Grant& grant) const {
  const auto found = shards_.find(grant.shard);
  return (found == shards_.end() ? 0 : found->second.period) == grant.period;
}

// Returns the sequence of the next events. The ledger's floors rise during a report: when it ends the
// entry of a deleted object that is back under its uid. The floor of all shards may be far ahead of
// this one, whose sequences are at most a little above its limit. The floor of this shard counts in
// any case: its sequences were used.
Sequence ChangeTracker::next(const Grant& grant, std::string_view key, WallTime now,
                             const LedgerEntry& entry) const {
  if (!grant.owner) return entry.sequence + 1;
  auto floor = ledger_.floor();
  if (const auto latest = latest_ ? latest_(grant.shard) : std::nullopt) {
    now = std::min(now, *latest);
    floor = std::min(floor, std::max(sequence_of(*latest), grant.floor) + kAboveLimit);
  }
  return next_sequence(now, std::max({grant.floor, floor, ledger_.floor(key)}), entry.sequence);
}

void ChangeTracker::end_grants(std::uint32_t shard) {
  ++shards_[shard].period;
  reports_.cancel([this, shard](std::string_view key) { return shard_of_key(key) == shard; });
}

// -- what changes --

void ChangeTracker::changed(const std::string& key, std::string_view uid, const Digest& digest,
                            std::string_view text, Milestone milestone, Report report) {
  const auto [seen, first] = seen_.try_emplace(key, digest);
  if (!first && seen->second == digest) {
    unchanged_.Increment();
    return;
  }
  if (first) ++seen_in_[shard_of_key(key)];
  seen->second = digest;
  unreadable_.erase(key);
  peers_.remove_others(key, uid, Clock::now());
  // An object in the state that this process reported last has no parts that its own row lacks. The
  // text of a state that is read again is not kept for a release of the shard.
  if ((!owns(key) || report == Report::as_read) && !is_reported(key, digest)) {
    seen_without_shard(key, uid, text);
  }
  if (!owns(key) && !may_lose_parts(key)) {
    // Objects that this process reported were deleted, and the owner of the shard may not know of
    // it.
    const auto known = ledger_.known().find(key);
    if (known != ledger_.known().end() && known->second.uid != uid) {
      dirty_.deleted(key, objects_.tombstone(key, known->second.uid), Clock::now());
    }
    return;
  }
  // The ledger's state does not count while a deletion of the object is due.
  if (owns(key) && first && is_reported(key, digest) && !peers_.contains(key) &&
      !dirty_.contains(key)) {
    unchanged_.Increment();
    return;
  }
  if (report == Report::as_read) {
    dirty_.changed(key, {}, {}, Clock::now());
  } else {
    dirty_.changed(key, text, milestone, Clock::now(), digest);
  }
}

void ChangeTracker::deleted(const std::string& key, std::string tombstone) {
  const auto now = Clock::now();
  const bool was_seen = seen_.erase(key) > 0;
  unreadable_.erase(key);
  if (was_seen) --seen_in_[shard_of_key(key)];
  peers_.remove(key, now);
  if ((was_seen && owns(key)) || ledger_.known().contains(key)) {
    dirty_.deleted(key, std::move(tombstone), now);
  }
}

std::size_t ChangeTracker::retry_refused() {
  const auto now = Clock::now();
  std::size_t events = 0;
  const auto retry = [&](const std::string& key, const LedgerHead& head) {
    if (head.refused.empty()) return;
    events += head.refused.size();
    retries_.insert(key);
    if (seen_.contains(key)) {
      if (owns(key)) dirty_.changed(key, {}, {}, now);
    } else if (head.gone) {
      dirty_.deleted(key, objects_.tombstone(key, head.uid), now);
    }
  };
  for (const auto& [key, head] : ledger_.known()) retry(key, head);
  for (const auto& [row, head] : ledger_.inventory()) {
    const std::string key(key_of_row(row));
    if (head.gone) peers_.remove(key, head.uid, now);  // so that it is among the predecessors
    retry(key, head);
  }
  return events;
}

void ChangeTracker::retried(const Grant& grant, const std::string& key) {
  retries_.erase(key);
  if (!grant.owner && seen_.contains(key)) to_retry_.insert(key);
}

void ChangeTracker::send_heartbeat() {
  const auto has_event = [this](const auto& seen) {
    const auto known = ledger_.known().find(seen.first);
    return owns(seen.first) && !unreadable_.contains(seen.first) &&
           (known == ledger_.known().end() || !is_own_refused(known->second)) &&
           objects_.is_readable(seen.first);
  };
  auto any = std::ranges::find_if(
      seen_, [&](const auto& seen) { return !dirty_.contains(seen.first) && has_event(seen); });
  if (any == seen_.end()) any = std::ranges::find_if(seen_, has_event);
  if (any != seen_.end()) dirty_.heartbeat(any->first, Clock::now());
}

Missing ChangeTracker::missing(const KeyFilter& is_gone) const {
  Missing missing;
  for (const auto& [key, head] : ledger_.known()) {
    if (is_gone(key)) missing.emplace_back(key, head.uid);
  }
  for (const auto& [row, head] : ledger_.inventory()) {
    if (is_gone(key_of_row(row))) missing.emplace_back(key_of_row(row), head.uid);
  }
  return missing;
}

void ChangeTracker::missed(const std::string& key, std::string_view uid, std::string tombstone) {
  const auto now = Clock::now();
  if (seen_.erase(key) > 0) --seen_in_[shard_of_key(key)];  // from a watch that ended before
  unreadable_.erase(key);
  peers_.remove(key, uid, now);
  if (owns(key) || ledger_.known().contains(key)) dirty_.deleted(key, std::move(tombstone), now);
}

void ChangeTracker::seen_without_shard(const std::string& key, std::string_view uid,
                                       std::string_view text) {
  if (options_.replicas > 1) peers_.add(key, uid, objects_.parts(text), Clock::now());
}

void ChangeTracker::reported_without_shard(const std::string& key, std::string_view uid,
                                           const std::vector<ResourceId>& parts) {
  const auto now = Clock::now();
  peers_.add(key, uid, parts, now);
  peers_.remove(key, uid, now);
}

void ChangeTracker::reported_without_shard(const std::string& key, std::string_view uid,
                                           const std::vector<ResourceId>& gone,
                                           const std::vector<ResourceId>& present) {
  const auto now = Clock::now();
  peers_.add(key, uid, gone, now);
  peers_.add(key, uid, present, now);
}

std::vector<std::string> ChangeTracker::predecessors(const std::string& key) const {
  return owns(key) ? peers_.deleted_uids(key) : std::vector<std::string>{};
}

std::size_t ChangeTracker::forget(const KeyFilter& which) {
  std::erase_if(seen_, [&](const auto& seen) {
    if (!which(seen.first)) return false;
    --seen_in_[shard_of_key(seen.first)];
    return true;
  });
  std::erase_if(unreadable_, which);
  reports_.cancel(which);
  dirty_.drop(which);
  std::vector<std::string> known;
  for (const auto& [key, head] : ledger_.known()) {
    if (which(key)) known.push_back(key);
  }
  for (const auto& key : known) ledger_.erase(key);
  std::vector<std::string> rows;
  for (const auto& [row, head] : ledger_.inventory()) {
    if (which(key_of_row(row))) rows.push_back(row);
  }
  for (const auto& row : rows) ledger_.erase(row);
  return known.size();
}

void ChangeTracker::report_all(const KeyFilter& which) {
  const auto now = Clock::now();
  for (const auto& [key, digest] : seen_) {
    if (owns(key) && which(key)) dirty_.changed(key, {}, {}, now);
  }
}

std::vector<std::string> ChangeTracker::owned_keys(const KeyFilter& which) const {
  std::vector<std::string> keys;
  for (const auto& [key, digest] : seen_) {
    if (owns(key) && which(key)) keys.push_back(key);
  }
  return keys;
}

void ChangeTracker::compare_again(const std::string& key) {
  if (!seen_.contains(key)) return;
  if (owns(key)) {
    dirty_.touch(key, Clock::now());
  } else {
    to_compare_.insert(key);
  }
}

std::string ChangeTracker::reported_key(std::string_view uid) const {
  const auto found = std::ranges::find_if(ledger_.known(), [&](const auto& known) {
    return known.second.uid == uid && seen_.contains(known.first) && owns(known.first);
  });
  return found == ledger_.known().end() ? std::string() : found->first;
}

Task<bool> ChangeTracker::report_again(std::string key, Refusals refusals) {
  const auto granted = grant(key);
  const auto is_idle = [&] {
    return granted && granted->owner && holds(*granted) && seen_.contains(key) &&
           !dirty_.is_busy(key) && objects_.is_readable(key);
  };
  if (!is_idle()) co_return false;
  auto entry = co_await ledger_.load(key);
  if (!entry || !is_idle()) co_return false;
  if (refusals == Refusals::forgotten) {
    entry->distrust();
  } else {
    entry->forget_contents();
  }
  if (ledger_.known().contains(key)) ledger_.store(key, *entry);
  if (dirty_.contains(key)) {
    dirty_.hasten(key);  // its report failed, and waits with its states
  } else {
    dirty_.changed(key, {}, {}, Clock::now());
  }
  co_return true;
}

// -- the control plane lost events --

Task<> ChangeTracker::report_all_again() {
  forget_terms();
  for (const auto shard : held_shards()) {
    co_await report_shard_again(shard);
    forget_terms();  // it may have been released meanwhile
  }
}

// Has each shard that is not held started over with its next claim, also when no other replica holds it
// until then.
void ChangeTracker::forget_terms() {
  for (const auto& name : ledger_.note_names(kShardNote)) {
    const auto shard = read_term(name.substr(kShardNote.size()));
    if (shard && !holds(static_cast<std::uint32_t>(*shard))) ledger_.set_note(name, "");
  }
}

// The shard is not held meanwhile, as during a take-over, so that no report in flight acknowledges an old entry.
Task<> ChangeTracker::report_shard_again(std::uint32_t shard) {
  while (holds(shard)) {
    end_grants(shard);
    shards_[shard].held = false;
    const auto period = shards_[shard].period;
    const bool done = co_await start_over(shard);
    // A claim or a release in between decides what follows.
    if (shards_[shard].period != period) continue;
    hold(shard);
    if (done) co_return;
    co_await sleep_for(kClaimRetry);
  }
}

std::vector<std::uint32_t> ChangeTracker::held_shards() const {
  std::vector<std::uint32_t> held;
  for (const auto& [shard, state] : shards_) {
    if (state.held) held.push_back(shard);
  }
  std::ranges::sort(held);
  return held;
}

Sequence ChangeTracker::present_sequence() const {
  auto now = wall_now();
  for (const auto shard : held_shards()) {
    if (const auto latest = latest_ ? latest_(shard) : std::nullopt) now = std::min(now, *latest);
  }
  return sequence_of(now);
}

bool ChangeTracker::is_unannounced(const std::string& key) const {
  const auto known = ledger_.known().find(key);
  return owns(key) && !unreadable_.contains(key) &&
         (known == ledger_.known().end() || known->second.sequence == 0);
}

std::size_t ChangeTracker::unannounced() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      seen_, [this](const auto& seen) { return is_unannounced(seen.first); }));
}

std::vector<std::string> ChangeTracker::unannounced_away() const {
  std::vector<std::string> keys;
  for (const auto& [key, digest] : seen_) {
    if (is_unannounced(key) && !objects_.is_readable(key)) keys.push_back(key);
  }
  return keys;
}

void ChangeTracker::unreadable(const std::string& key) {
  if (seen_.contains(key)) unreadable_.insert(key);
}

// -- shards --

void ChangeTracker::claimed(std::uint32_t shard, Term term, Sequence floor) {
  end_grants(shard);
  auto& state = shards_[shard];
  state.claimed = true;
  state.held = false;
  state.floor = std::max(state.floor, floor);
  const Claim claim{.shard = shard, .term = term};
  const auto before = read_term(ledger_.note(shard_note(shard)));
  if (before && nobody_between(*before, term)) {
    take_over(claim);
    return;
  }
  claims_.push_back(claim);
  claims_changed_.notify_all();
}

void ChangeTracker::released(std::uint32_t shard) {
  end_grants(shard);
  shards_[shard].claimed = false;
  shards_[shard].held = false;
  std::erase_if(claims_, [shard](const Claim& claim) { return claim.shard == shard; });
  // States that were not reported enter the inventory (ObjectReporter::report_missed()).
  dirty_.drop_live([this, shard](std::string_view key) {
    return shard_of_key(key) == shard && !may_lose_parts(key) &&
           !dirty_.has_states(std::string(key));
  });
}

bool ChangeTracker::busy(std::uint32_t shard) const {
  return dirty_.in_work([this, shard](std::string_view key) { return shard_of_key(key) == shard; });
}

Task<> ChangeTracker::take_claims() {
  while (true) {
    while (claims_.empty()) co_await claims_changed_.wait();
    const auto claim = claims_.front();
    if (!co_await start_over(claim.shard)) {
      co_await sleep_for(kClaimRetry);
      continue;
    }
    // The shard may have been released meanwhile.
    if (claims_.empty() || claims_.front() != claim) continue;
    claims_.pop_front();
    objects_.taken_over(claim.shard);
    take_over(claim);
  }
}

// Forgets the digests of the shard: another replica reported it, so the acknowledged states may be
// outdated. The entries stay, so that deletions are found. A deletion of the inventory that was
// announced in an earlier term gets a new sequence, above the states that the other replica may have
// reported.
Task<bool> ChangeTracker::start_over(std::uint32_t shard) {
  std::vector<std::string> rows;
  for (const auto& [key, head] : ledger_.known()) {
    if (shard_of_key(key) == shard) rows.push_back(key);
  }
  for (const auto& [row, head] : ledger_.inventory()) {
    if (head.sequence != 0 && shard_of_key(key_of_row(row)) == shard) rows.push_back(row);
  }
  for (const auto& row : rows) {
    auto entry = co_await ledger_.load(row);
    if (!entry) co_return false;
    if (is_inventory_row(row)) {
      if (!ledger_.inventory().contains(row)) continue;  // its retention has ended
      announce_again(*entry);
    } else {
      entry->distrust();
    }
    ledger_.store(row, *entry);
  }
  co_return true;
}

// Writes the term, only after start_over(): a kill before that must not leave old digests under the
// new term.
void ChangeTracker::take_over(Claim claim) {
  ledger_.set_note(shard_note(claim.shard), std::to_string(claim.term));
  hold(claim.shard);
}

void ChangeTracker::hold(std::uint32_t shard) {
  shards_[shard].held = true;
  std::erase_if(to_retry_, [&](const std::string& key) {
    if (shard_of_key(key) != shard) return false;
    retries_.insert(key);
    return true;
  });
  const auto now = Clock::now();
  // The inventory has the objects that other replicas may have reported; their reports find deleted
  // parts.
  for (const auto& [row, head] : ledger_.inventory()) {
    const std::string key(key_of_row(row));
    if (shard_of_key(key) != shard) continue;
    if (seen_.contains(key) || !peers_.deleted_uids(key).empty()) dirty_.changed(key, {}, {}, now);
  }
  for (const auto& [key, digest] : seen_) {
    if (shard_of_key(key) != shard || is_reported(key, digest)) continue;
    dirty_.changed(key, {}, {}, now);
  }
  std::erase_if(to_compare_, [&](const std::string& key) { return shard_of_key(key) == shard; });
}

}  // namespace gitops::reporter
