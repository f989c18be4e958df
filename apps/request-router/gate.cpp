#include "request-router/gate.hpp"

#include <algorithm>

namespace gitops::router {

bool Gate::enter(Clock::time_point now) {
  if (concurrency_ > 0 && inside_ >= concurrency_) return false;
  if (rate_ > 0) {
    const auto most = static_cast<double>(2 * rate_);
    const std::chrono::duration<double> passed = now - filled_;
    tokens_ = filled_ == Clock::time_point{}
                  ? most
                  : std::min(most, tokens_ + passed.count() * static_cast<double>(rate_));
    filled_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
  }
  ++inside_;
  return true;
}

}  // namespace gitops::router
