#pragma once

#include <cstdint>

#include "common/core/time.hpp"

namespace gitops::router {

// What one event source may get: so many requests per second (with a burst of twice that), and so
// many at the same time. 0: any number. Pure; time is passed in.
class Gate {
 public:
  Gate(std::int64_t rate, std::int64_t concurrency) : rate_(rate), concurrency_(concurrency) {}

  // True when a request may enter; it then leaves once.
  bool enter(Clock::time_point now);
  void leave() { --inside_; }
  [[nodiscard]] std::int64_t inside() const { return inside_; }

 private:
  std::int64_t rate_;
  std::int64_t concurrency_;
  std::int64_t inside_ = 0;
  double tokens_ = 0;
  Clock::time_point filled_{};  // when tokens_ was right; the epoch: it was never used
};

}  // namespace gitops::router
