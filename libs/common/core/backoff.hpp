#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace gitops {

// Delays between attempts: exponential with full jitter (uniform in [0, cap]), reset by success.
// Pure arithmetic: randomness comes from the generator it was given.
class Backoff {
 public:
  struct Options {
    std::chrono::milliseconds initial{200};  // cap of the first delay
    std::chrono::milliseconds max{30'000};   // cap of every later one
  };
  Backoff(Options options, std::uint64_t seed);

  // Returns the next delay. With a `floor` (a Retry-After), the delay is the floor plus jitter of
  // at most a tenth of it, so that clients with the same floor do not return together.
  std::chrono::milliseconds next(std::chrono::milliseconds floor = std::chrono::milliseconds{0});
  void reset() { attempt_ = 0; }
  // Number of delays since the last reset.
  [[nodiscard]] unsigned attempts() const { return attempt_; }

 private:
  Options options_;
  std::minstd_rand random_;
  unsigned attempt_ = 0;
};

// A seed that differs from process to process.
std::uint64_t random_seed();

}  // namespace gitops
