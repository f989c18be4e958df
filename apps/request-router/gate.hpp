#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "common/core/time.hpp"

namespace gitops::router {

// Rate limit (with a burst of twice the rate) and concurrency limit of one event source. 0: no
// limit. Time is passed in. Any thread.
class Gate {
 public:
  Gate(std::int64_t rate, std::int64_t concurrency) : rate_(rate), concurrency_(concurrency) {}

  // True when a request may enter; it then leaves once.
  bool enter(Clock::time_point now);
  void leave();
  [[nodiscard]] std::int64_t inside() const;
  // True when a new gate would behave the same from `now` on, so that this one can be forgotten.
  [[nodiscard]] bool unused(Clock::time_point now) const;

 private:
  [[nodiscard]] double tokens(Clock::time_point now) const;

  const std::int64_t rate_;
  const std::int64_t concurrency_;
  mutable std::mutex mutex_;
  std::int64_t inside_ = 0;
  double tokens_ = 0;
  Clock::time_point filled_{};  // when tokens_ was right; the epoch: it was never used
};

// The one gate of each event source, whichever loop asks. Any thread.
class Gates {
 public:
  Gates(std::int64_t rate, std::int64_t concurrency) : rate_(rate), concurrency_(concurrency) {}

  // The gate of this host; the same object for as long as anybody holds it.
  std::shared_ptr<Gate> of(const std::string& host);

 private:
  const std::int64_t rate_;
  const std::int64_t concurrency_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Gate>> gates_;
  std::size_t tidy_at_ = 1'000;
};

}  // namespace gitops::router
