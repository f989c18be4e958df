#pragma once

#include <cstddef>

namespace gitops::reporter {

// A key of an object's state, which decides which states may be skipped when not all can be
// reported. States with the same `state` count as one. Among states of the same `operation` (one
// history id) the newest replaces the others first.
struct Milestone {
  std::size_t operation = 0;
  std::size_t state = 0;

  bool operator==(const Milestone&) const = default;
};

}  // namespace gitops::reporter
