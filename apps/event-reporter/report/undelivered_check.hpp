#pragma once

#include "common/core/time.hpp"
#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/newest_states.hpp"

namespace gitops::reporter {

// Makes objects due whose newest state was read and has not been delivered by the watch for a minute.
// Their present state is then compared. Loop thread only; the arguments outlive it.
class UndeliveredCheck {
 public:
  UndeliveredCheck(NewestStates& newest, ChangeTracker& changes, NewestStates::Watched watched);

  // Checks once a minute. Call it at every tick.
  void look(Clock::time_point now);

 private:
  NewestStates& newest_;
  ChangeTracker& changes_;
  NewestStates::Watched watched_;
  Clock::time_point next_{};
};

}  // namespace gitops::reporter
