#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/core/time.hpp"

namespace gitops::http {

// Time limit for the sender of a request's body. Counts only the time spent waiting for its bytes,
// so that a slow receiver does not count against the client. Each received byte extends the limit
// by its time at the minimum rate. Pure.
class BodyPace {
 public:
  struct Limits {
    std::uint64_t min_body_rate = 1024;            // bytes per second; 0: none
    std::chrono::milliseconds body_grace{10'000};  // before min_body_rate applies
    std::optional<std::chrono::milliseconds> body_deadline = std::nullopt;  // for the whole body
    std::chrono::milliseconds body_timeout{60'000};                         // for each read
  };
  void start(const Limits& limits, Clock::time_point now);
  // Begins to wait for more of the body. Returns the deadline.
  Deadline wait(Clock::time_point now);
  // Records received bytes.
  void came(std::size_t bytes, Clock::time_point now);

 private:
  Limits limits_;
  Clock::time_point waits_since_{};
  Clock::duration left_{};  // left to wait at the minimum rate
  Deadline end_ = kNever;
};

}  // namespace gitops::http
