#include "request-router/gate.hpp"

#include <algorithm>

namespace gitops::router {

double Gate::tokens(Clock::time_point now) const {
  const auto most = static_cast<double>(2 * limits_.rate);
  if (filled_ == Clock::time_point{}) return most;
  const std::chrono::duration<double> passed = now - filled_;
  return std::min(most,
                  tokens_ + std::max(0.0, passed.count()) * static_cast<double>(limits_.rate));
}

Gate::Permit Gate::acquire(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (limits_.concurrency > 0 && inside_ >= limits_.concurrency) return Permit(nullptr);
  if (limits_.rate > 0) {
    tokens_ = tokens(now);
    filled_ = std::max(filled_, now);  // another loop's clock may be later
    if (tokens_ < 1) return Permit(nullptr);
    tokens_ -= 1;
  }
  ++inside_;
  return Permit(this);
}

void Gate::set(GateLimits limits) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
}

void Gate::release() {
  const std::lock_guard lock(mutex_);
  --inside_;
}

std::int64_t Gate::inside() const {
  const std::lock_guard lock(mutex_);
  return inside_;
}

bool Gate::unused(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return inside_ == 0 && tokens(now) >= static_cast<double>(2 * limits_.rate);
}

std::shared_ptr<Gate> Gates::of(const std::string& host) {
  const std::lock_guard lock(mutex_);
  auto& known = gates_[host];
  if (auto gate = known.lock()) return gate;
  auto gate = std::make_shared<Gate>(limits_);
  known = gate;
  if (gates_.size() >= tidy_at_) {
    std::erase_if(gates_, [](const auto& item) { return item.second.expired(); });
    tidy_at_ = std::max<std::size_t>(1'000, 2 * gates_.size());
  }
  return gate;
}

void Gates::set(GateLimits limits) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
  for (const auto& [host, known] : gates_) {
    if (const auto gate = known.lock()) gate->set(limits);
  }
}

}  // namespace gitops::router
