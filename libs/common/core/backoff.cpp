#include "common/core/backoff.hpp"

#include <algorithm>

namespace gitops {

namespace {

using std::chrono::milliseconds;

milliseconds up_to(milliseconds cap, std::minstd_rand& random) {
  std::uniform_int_distribution<milliseconds::rep> distribution(0, cap.count());
  return milliseconds(distribution(random));
}

}  // namespace

Backoff::Backoff(Options options, std::uint64_t seed)
    : options_(options), random_(static_cast<std::minstd_rand::result_type>(seed)) {
  options_.initial = std::max(options_.initial, milliseconds(1));
  options_.max = std::max(options_.max, options_.initial);
}

milliseconds Backoff::next(milliseconds floor) {
  milliseconds cap = options_.initial;
  for (unsigned i = 0; i < attempt_ && cap < options_.max; ++i) cap *= 2;
  ++attempt_;
  const milliseconds delay = up_to(std::min(cap, options_.max), random_);
  if (floor <= milliseconds::zero()) return delay;
  return std::max(delay, floor + up_to(floor / 10, random_));
}

std::uint64_t random_seed() {
  // The device takes microseconds, which is much for a seed that most callers never use.
  thread_local std::mt19937_64 seeds([] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }());
  return seeds();
}

}  // namespace gitops
