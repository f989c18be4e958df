#include "common/core/attempts.hpp"

#include <algorithm>

namespace gitops {

Clock::duration Attempts::wait_of(std::string_view key, Clock::time_point now) const {
  const auto found = known_.find(std::string(key));
  if (found == known_.end()) return Clock::duration::zero();
  // All attempts are used up when `burst` periods are outstanding.
  const auto allowed_from =
      found->second.empty_at - (static_cast<long>(options_.burst) - 1) * options_.period;
  return std::max(Clock::duration::zero(), Clock::duration(allowed_from - now));
}

void Attempts::spend(std::string_view key, Clock::time_point now) {
  const std::string text(key);
  const auto found = known_.find(text);
  if (found != known_.end()) {
    found->second.empty_at = std::max(found->second.empty_at, now) + options_.period;
    order_.splice(order_.end(), order_, found->second.place);
    return;
  }
  if (known_.size() >= options_.max_keys) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  known_.emplace(
      text, Entry{.empty_at = now + options_.period, .place = order_.insert(order_.end(), text)});
}

}  // namespace gitops
