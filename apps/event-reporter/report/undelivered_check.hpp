#pragma once

#include "common/core/time.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/newest_states.hpp"

namespace gitops::reporter {

// Has objects compared again whose newest state was read, and has not come by the watch for a minute.
// What there is now decides. Loop thread only; the arguments outlive it.
class UndeliveredCheck {
 public:
  UndeliveredCheck(NewestStates& newest, ChangeTracker& changes, NewestStates::Watched watched);

  // To be called at every tick; looks once a minute.
  void look(Clock::time_point now);

 private:
  NewestStates& newest_;
  ChangeTracker& changes_;
  NewestStates::Watched watched_;
  Clock::time_point next_{};
};

}  // namespace gitops::reporter
