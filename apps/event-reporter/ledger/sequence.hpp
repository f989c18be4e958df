#pragma once

#include <cstdint>

#include "common/core/time.hpp"

namespace gitops::reporter {

// Orders the events of one object: a receiver ignores an event whose sequence is not above that of
// the last event it accepted. Microseconds since 1970 of a hybrid clock, which never goes back: it
// follows the wall clock, and runs ahead of a wall clock that was set back.
using Sequence = std::uint64_t;

// Returns the sequence of a moment; 0 for moments before 1970.
[[nodiscard]] Sequence sequence_of(WallTime time);

// Returns the sequence of the next report of an object. `floor` lies above every sequence that
// another replica may have used; `last` is the highest one that this replica used for the object.
// Pure.
[[nodiscard]] Sequence next_sequence(WallTime now, Sequence floor, Sequence last);

}  // namespace gitops::reporter
