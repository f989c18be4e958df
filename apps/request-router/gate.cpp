#include "request-router/gate.hpp"

#include <algorithm>

namespace gitops::router {

double Gate::tokens(Clock::time_point now) const {
  const auto most = static_cast<double>(2 * rate_);
  if (filled_ == Clock::time_point{}) return most;
  const std::chrono::duration<double> passed = now - filled_;
  return std::min(most, tokens_ + std::max(0.0, passed.count()) * static_cast<double>(rate_));
}

bool Gate::enter(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (concurrency_ > 0 && inside_ >= concurrency_) return false;
  if (rate_ > 0) {
    tokens_ = tokens(now);
    filled_ = std::max(filled_, now);  // another loop's clock may have been read later
    if (tokens_ < 1) return false;
    tokens_ -= 1;
  }
  ++inside_;
  return true;
}

void Gate::leave() {
  const std::lock_guard lock(mutex_);
  --inside_;
}

std::int64_t Gate::inside() const {
  const std::lock_guard lock(mutex_);
  return inside_;
}

bool Gate::unused(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return inside_ == 0 && tokens(now) >= static_cast<double>(2 * rate_);
}

std::shared_ptr<Gate> Gates::of(const std::string& host) {
  const std::lock_guard lock(mutex_);
  auto& known = gates_[host];
  if (auto gate = known.lock()) return gate;
  auto gate = std::make_shared<Gate>(rate_, concurrency_);
  known = gate;
  if (gates_.size() >= tidy_at_) {
    std::erase_if(gates_, [](const auto& item) { return item.second.expired(); });
    tidy_at_ = std::max<std::size_t>(1'000, 2 * gates_.size());
  }
  return gate;
}

}  // namespace gitops::router
