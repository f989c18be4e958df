#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gitops::bench {

// The middle one; of an even number the upper of the two. There is at least one.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace gitops::bench
