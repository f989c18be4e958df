#include "event-reporter/shards/peer_inventory.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "event-reporter/ledger/digest.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kTick = std::chrono::seconds(10);
// Pause after a failed read of the ledger.
constexpr auto kRetry = std::chrono::seconds(1);

LedgerEntry entry_of(std::string_view uid, const std::vector<ResourceId>& parts) {
  LedgerEntry entry{.uid = std::string(uid)};
  for (const auto& part : parts) entry.note(part);
  Hasher hasher;
  for (const auto& [identity, part] : entry.resources) hasher.add(identity);
  entry.change = hasher.finish();
  return entry;
}

// Returns the rows of `key`, which are adjacent.
auto rows_of(const Ledger& ledger, std::string_view key) {
  const auto& rows = ledger.inventory();
  const auto begin = rows.lower_bound(inventory_row(key, ""));
  return std::ranges::subrange(begin, std::find_if(begin, rows.end(), [key](const auto& row) {
                                 return key_of_row(row.first) != key;
                               }));
}

}  // namespace

PeerInventory::PeerInventory(const Executor& executor, Ledger& ledger,
                             std::chrono::milliseconds retention, TakesEvents takes_events)
    : ledger_(ledger),
      retention_(retention),
      takes_events_(std::move(takes_events)),
      changed_(executor) {}

void PeerInventory::start(TaskGroup& group) {
  group.spawn("inventory", [this] { return refresh_inventory(); });
}

// -- what the watch delivers --

void PeerInventory::add(const std::string& key, std::string_view uid,
                        const std::vector<ResourceId>& parts, Clock::time_point now) {
  const auto row = inventory_row(key, uid);
  auto newest = entry_of(uid, parts);
  const auto written = ledger_.inventory().find(row);
  if (written == ledger_.inventory().end()) {
    ledger_.store(row, newest);
    outdated_.erase(row);
    unmerged_.erase(row);
  } else if (written->second.change == newest.change && !unmerged_.contains(row)) {
    outdated_.erase(row);
  } else if (!is_newest(row, newest)) {
    auto& parts_of_row = unmerged_[row];
    for (const auto& [identity, part] : newest.resources) {
      parts_of_row.insert_or_assign(identity, part);
    }
    outdate(row, std::move(newest), now);
    changed_.notify_all();
  }
}

void PeerInventory::remove(std::string_view key, Clock::time_point now) {
  for (const auto& [row, head] : rows_of(ledger_, key)) outdate(row, std::nullopt, now);
}

void PeerInventory::remove(std::string_view key, std::string_view uid, Clock::time_point now) {
  const auto row = inventory_row(key, uid);
  if (ledger_.inventory().contains(row)) outdate(row, std::nullopt, now);
}

void PeerInventory::remove_others(std::string_view key, std::string_view uid,
                                  Clock::time_point now) {
  for (const auto& [row, head] : rows_of(ledger_, key)) {
    if (uid_of_row(row) != uid) {
      outdate(row, std::nullopt, now);
      continue;
    }
    // A read was ahead of the watch, which delivered a predecessor or its deletion after that.
    const auto found = outdated_.find(row);
    if (found != outdated_.end() && !found->second.newest) outdated_.erase(found);
  }
}

// Marks a row as outdated. The retention starts with the first deletion, or with the last change.
void PeerInventory::outdate(const std::string& row, std::optional<LedgerEntry> newest,
                            Clock::time_point now) {
  const auto found = outdated_.find(row);
  if (found != outdated_.end() && !newest && !found->second.newest) return;
  outdated_.insert_or_assign(row, Outdated{.since = now, .newest = std::move(newest)});
}

bool PeerInventory::is_newest(const std::string& row, const LedgerEntry& entry) const {
  const auto found = outdated_.find(row);
  return found != outdated_.end() && found->second.newest == entry;
}

bool PeerInventory::contains(std::string_view key) const {
  return !rows_of(ledger_, key).empty();
}

std::vector<std::string> PeerInventory::deleted_uids(std::string_view key) const {
  std::vector<std::string> uids;
  for (const auto& [row, head] : rows_of(ledger_, key)) {
    const auto found = outdated_.find(row);
    if (found != outdated_.end() && !found->second.newest) uids.emplace_back(uid_of_row(row));
  }
  return uids;
}

// -- what is written --

void PeerInventory::expire(Clock::time_point now) {
  const auto since_last = now - std::exchange(expired_, now);
  if (takes_events_ && !takes_events_()) {
    for (auto& [row, what] : outdated_) what.since = std::min(what.since + since_last, now);
  }
  std::erase_if(outdated_, [&](const auto& outdated) {
    const auto& [row, what] = outdated;
    if (now - what.since < retention_) return false;
    // The row is removed when this process has reported the object itself meanwhile.
    const auto known = ledger_.inventory().find(row);
    if (known == ledger_.inventory().end()) return true;
    if (!known->second.refused.empty()) return false;  // a deletion must still be reported
    if (what.newest) {
      ledger_.store(row, *what.newest);
    } else {
      ledger_.erase(row);
    }
    return true;
  });
}

Task<> PeerInventory::flush(Deadline deadline) {
  while (!unmerged_.empty() && co_await changed_.wait(deadline)) {
  }
}

Task<> PeerInventory::refresh_inventory() {
  while (true) {
    const auto next_tick = deadline_after(kTick);
    while (unmerged_.empty() && Clock::now() < next_tick) co_await changed_.wait(next_tick);
    while (!unmerged_.empty()) {
      if (!co_await merge(unmerged_.begin()->first)) co_await sleep_for(kRetry);
    }
    changed_.notify_all();
    expire(Clock::now());
  }
}

// Adds the parts to the row. The row has no `change` then, since it is not the object's present state.
Task<bool> PeerInventory::merge(std::string row) {
  auto loaded = co_await ledger_.load(row);
  if (!loaded) co_return false;
  const auto parts = unmerged_.extract(row);
  if (parts.empty() || !ledger_.inventory().contains(row)) co_return true;
  auto merged = std::move(*loaded);
  merged.change.reset();
  for (const auto& [identity, part] : parts.mapped()) {
    merged.resources[identity].version = part.version;
  }
  ledger_.store(row, merged);
  co_return true;
}

}  // namespace gitops::reporter
