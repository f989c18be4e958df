#include "event-reporter/report/dirty_set.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "event-reporter/event/manifest.hpp"

namespace gitops::reporter {

DirtyWork& DirtySet::mark(const std::string& key, Clock::time_point now) {
  auto& work = dirty_[key];
  if (work.empty() && work.since == Clock::time_point{}) work.since = now;
  enqueue(key, work);
  return work;
}

void DirtySet::enqueue(const std::string& key, const DirtyWork& work) {
  // Other keys have waited longer for room.
  const bool must_wait = !overdue_.empty() && !queue_.contains(key);
  if (must_wait || !queue_.add(key)) overdue_.emplace(work.since, key);
  if (must_wait) refill();
}

void DirtySet::changed(const std::string& key, std::string_view text, Milestone milestone,
                       Clock::time_point now, std::optional<Digest> digest) {
  auto& work = mark(key, now);
  work.live = true;
  if (text.empty()) {
    drop_states(work);
    work.is_from_scratch = true;
  } else {
    keep(work, text, milestone, digest);
  }
}

void DirtySet::touch(const std::string& key, Clock::time_point now) {
  if (!dirty_.contains(key)) mark(key, now).live = true;
}

void DirtySet::deleted(const std::string& key, std::string tombstone, Clock::time_point now) {
  auto& work = mark(key, now);
  drop_states(work);
  work.live = false;
  work.heartbeat = false;
  if (work.tombstone.empty()) bury(work, std::move(tombstone));
}

void DirtySet::bury(DirtyWork& work, std::string tombstone) {
  kept_bytes_ -= work.tombstone.size();
  if (kept_bytes_ + tombstone.size() > limits_.bytes) {
    if (auto stub = identity_stub(tombstone); stub.size() < tombstone.size()) {
      tombstone = std::move(stub);
    }
  }
  kept_bytes_ += tombstone.size();
  work.tombstone = std::move(tombstone);
}

void DirtySet::hasten(const std::string& key) {
  const auto found = dirty_.find(key);
  if (found != dirty_.end()) enqueue(key, found->second);
}

void DirtySet::heartbeat(const std::string& key, Clock::time_point now) {
  auto& work = mark(key, now);
  work.live = true;
  work.heartbeat = true;
}

void DirtySet::keep(DirtyWork& work, std::string_view text, Milestone milestone,
                    std::optional<Digest> digest) {
  if (!work.states.empty() && work.states.back().milestone == milestone) {
    kept_bytes_ -= work.states.back().text.size();
    work.states.pop_back();
  }
  if (kept_bytes_ + text.size() > limits_.bytes) {
    drop_states(work);
    return;
  }
  kept_bytes_ += text.size();
  work.states.push_back({.text = std::string(text), .milestone = milestone, .digest = digest});
  fit(work);
}

void DirtySet::fit(DirtyWork& work) {
  auto& states = work.states;
  while (states.size() > limits_.states) {
    // The oldest state whose successor is of the same operation, or else the oldest state.
    auto victim =
        std::adjacent_find(states.begin(), states.end(), [](const auto& a, const auto& b) {
          return a.milestone.operation == b.milestone.operation;
        });
    if (victim == states.end()) victim = states.begin();
    kept_bytes_ -= victim->text.size();
    states.erase(victim);
  }
}

void DirtySet::drop_states(DirtyWork& work) {
  for (const auto& state : work.states) kept_bytes_ -= state.text.size();
  work.states.clear();
}

DirtyWork DirtySet::take(const std::string& key) {
  DirtyWork work;
  if (const auto found = dirty_.find(key); found != dirty_.end()) {
    work = std::move(found->second);
    dirty_.erase(found);
    overdue_.erase({work.since, key});
    kept_bytes_ -= work.tombstone.size();
    for (const auto& state : work.states) kept_bytes_ -= state.text.size();
    in_work_[key] = work.since;
  }
  return work;
}

void DirtySet::give_back(const std::string& key, DirtyWork rest) {
  in_work_.erase(key);
  if (dropped_.erase(key) > 0) return;
  auto& work = dirty_[key];
  const bool newer = !work.empty();
  const bool deleted_since = !work.tombstone.empty();
  work.since = rest.since;
  if (!rest.tombstone.empty()) bury(work, std::move(rest.tombstone));
  if (!newer) {
    work.live = rest.live;
    work.heartbeat = rest.heartbeat;
    for (auto& state : rest.states) keep(work, state.text, state.milestone, state.digest);
    return;
  }
  // The older states are dropped when the object was deleted since, even if it was created again, and
  // when its newest state was to be read, even if further states came after that: the cluster may have
  // been restored from a backup, which undid the older states.
  if (deleted_since || !work.live || work.is_from_scratch) return;
  if (work.states.empty() || rest.states.empty()) return;
  for (const auto& state : rest.states) kept_bytes_ += state.text.size();
  work.states.insert(work.states.begin(), std::make_move_iterator(rest.states.begin()),
                     std::make_move_iterator(rest.states.end()));
  fit(work);
  if (kept_bytes_ > limits_.bytes) drop_states(work);
}

void DirtySet::refill() {
  while (!overdue_.empty() && queue_.add(overdue_.begin()->second)) {
    overdue_.erase(overdue_.begin());
  }
}

std::size_t DirtySet::bring_forward(std::size_t most) {
  return queue_.bring_forward(most);
}

bool DirtySet::has_states(const std::string& key) const {
  const auto found = dirty_.find(key);
  return found != dirty_.end() && !found->second.states.empty();
}

bool DirtySet::is_busy(const std::string& key) const {
  const auto found = dirty_.find(key);
  return in_work_.contains(key) || (found != dirty_.end() && !found->second.tombstone.empty());
}

void DirtySet::drop_live(const KeyFilter& which) {
  for (auto& [key, work] : dirty_) {
    if (!which(key)) continue;
    drop_states(work);
    work.live = false;
    work.heartbeat = false;
  }
  std::erase_if(dirty_, [&](const auto& item) {
    const auto& [key, work] = item;
    if (!which(key) || !work.tombstone.empty()) return false;
    overdue_.erase({work.since, key});
    return true;
  });
}

void DirtySet::drop(const KeyFilter& which) {
  for (auto& [key, work] : dirty_) {
    if (!which(key)) continue;
    kept_bytes_ -= work.tombstone.size();
    work.tombstone.clear();
  }
  for (const auto& [key, since] : in_work_) {
    if (which(key)) dropped_.insert(key);
  }
  drop_live(which);
}

bool DirtySet::in_work(const KeyFilter& which) const {
  return std::ranges::any_of(in_work_, [&which](const auto& work) { return which(work.first); });
}

Clock::duration DirtySet::oldest(Clock::time_point now) const {
  auto oldest = now;
  for (const auto& [key, work] : dirty_) oldest = std::min(oldest, work.since);
  for (const auto& [key, since] : in_work_) oldest = std::min(oldest, since);
  return now - oldest;
}

}  // namespace gitops::reporter
