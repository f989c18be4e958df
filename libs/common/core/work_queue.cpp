#include "common/core/work_queue.hpp"

#include <algorithm>

namespace gitops {

WorkQueue::WorkQueue(const Executor& executor, std::size_t capacity, SlowLane slow,
                     Clock::duration batch_period)
    : capacity_(capacity), slow_(std::move(slow)), batch_period_(batch_period), line_(executor) {}

bool WorkQueue::add(const std::string& key) {
  if (stopped_) return false;
  if (const auto held = working_.find(key); held != working_.end()) {
    held->second = true;
    return true;
  }
  if (waiting_.contains(key)) return true;
  if (const auto delayed = due_.find(key); delayed != due_.end()) {
    delayed_.erase({delayed->second, key});
    due_.erase(delayed);
  } else if (normal_keys_.size() + batch_.size() >= capacity_) {
    return false;
  }
  gather(key);
  return true;
}

Task<bool> WorkQueue::wait() {
  std::optional<WaitLine::Ticket> place;
  while (!stopped_) {
    release_due(Clock::now());
    const bool first = place ? place->is_first() : line_.empty();
    if (first && next_lane() != nullptr) co_return true;
    if (!place) place.emplace(line_);
    // The next in the line is woken when the first one leaves, and then waits for the delayed keys.
    co_await place->wait(place->is_first() ? next_release() : kNever);
  }
  co_return false;
}

std::optional<std::string> WorkQueue::take() {
  auto* const lane = next_lane();
  if (lane == nullptr) return std::nullopt;
  std::optional<std::string> key(std::move(lane->front().key));
  lane->pop_front();
  waiting_.erase(*key);
  working_.emplace(*key, false);
  return key;
}

void WorkQueue::done(const std::string& key) {
  if (leave_work(key)) make_ready(key);
}

void WorkQueue::retry(const std::string& key, Clock::duration delay) {
  if (!working_.contains(key)) return;
  if (leave_work(key)) {
    make_ready(key);
  } else if (!stopped_) {
    const Clock::time_point when = deadline_after(delay);
    delayed_.emplace(when, key);
    due_.emplace(key, when);
    line_.wake_first();
  }
}

std::size_t WorkQueue::bring_forward(std::size_t most) {
  std::size_t count = 0;
  for (; count < most && !delayed_.empty(); ++count) {
    const std::string key = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    due_.erase(key);
    make_ready(key);
  }
  return count;
}

void WorkQueue::stop() {
  stopped_ = true;
  normal_keys_.clear();
  slow_keys_.clear();
  batch_.clear();
  waiting_.clear();
  delayed_.clear();
  due_.clear();
  line_.wake_all();
}

void WorkQueue::make_ready(const std::string& key) {
  auto& lane = slow_.is_slow && slow_.is_slow(key) ? slow_keys_ : normal_keys_;
  lane.push_back({.number = ++made_ready_, .key = key});
  waiting_.insert(key);
  line_.wake_first();
}

void WorkQueue::gather(const std::string& key) {
  if (batch_period_ == Clock::duration::zero()) {
    make_ready(key);
    return;
  }
  waiting_.insert(key);
  batch_.push_back(key);
  if (batch_.size() > 1) return;
  batch_ends_ = deadline_after(batch_period_);
  line_.wake_first();
}

Deadline WorkQueue::next_release() const {
  const auto delayed = delayed_.empty() ? kNever : delayed_.begin()->first;
  return batch_.empty() ? delayed : std::min(delayed, batch_ends_);
}

void WorkQueue::release_due(Clock::time_point now) {
  if (!batch_.empty() && batch_ends_ <= now) {
    for (const auto& key : std::exchange(batch_, {})) make_ready(key);
  }
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const std::string key = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    due_.erase(key);
    make_ready(key);
  }
}

WorkQueue::Lane* WorkQueue::next_lane() {
  const bool slow = !slow_keys_.empty() && slow_.has_place();
  if (normal_keys_.empty()) return slow ? &slow_keys_ : nullptr;
  return slow && slow_keys_.front().number < normal_keys_.front().number ? &slow_keys_
                                                                         : &normal_keys_;
}

bool WorkQueue::leave_work(const std::string& key) {
  const auto held = working_.find(key);
  if (held == working_.end()) return false;
  const bool again = held->second;
  working_.erase(held);
  if (!slow_keys_.empty()) line_.wake_first();
  return again && !stopped_;
}

}  // namespace gitops
