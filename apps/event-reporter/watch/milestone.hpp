#pragma once

#include <cstddef>

namespace gitops::reporter {

// What tells two states of one object apart when not both can be reported: states of the same
// `operation` (one history id) replace each other first, and two with the same `state` are one.
struct Milestone {
  std::size_t operation = 0;
  std::size_t state = 0;

  bool operator==(const Milestone&) const = default;
};

}  // namespace gitops::reporter
