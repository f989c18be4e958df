#include "event-reporter/report/undelivered_check.hpp"

#include <utility>

namespace gitops::reporter {
namespace {

// Time within which the watch must deliver a state that was read. A watch takes seconds.
constexpr auto kUndelivered = std::chrono::minutes(1);

}  // namespace

UndeliveredCheck::UndeliveredCheck(NewestStates& newest, ChangeTracker& changes,
                                   NewestStates::Watched watched)
    : newest_(newest), changes_(changes), watched_(std::move(watched)) {}

void UndeliveredCheck::look(Clock::time_point now) {
  if (now < next_) return;
  next_ = now + kUndelivered;
  for (const auto& key : newest_.take_undelivered(watched_)) changes_.compare_again(key);
}

}  // namespace gitops::reporter
