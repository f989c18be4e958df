#include "event-reporter/ledger/sequence.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace gitops::reporter {

Sequence sequence_of(WallTime time) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  return micros < 0 ? 0 : static_cast<Sequence>(micros);
}

Sequence next_sequence(WallTime now, Sequence floor, Sequence last) {
  const auto above = last == std::numeric_limits<Sequence>::max() ? last : last + 1;
  return std::max({sequence_of(now), floor, above});
}

}  // namespace gitops::reporter
