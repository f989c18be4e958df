#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/core/time.hpp"

namespace gitops::router {

// Limits of one event source. 0: no limit.
struct GateLimits {
  std::int64_t rate = 0;         // requests per second, twice that at once
  std::int64_t concurrency = 0;  // requests inside
};

// Holds one event source to its limits. Time is passed in. Any thread.
class Gate {
 public:
  explicit Gate(GateLimits limits) : limits_(limits) {}

  // The place of a request inside of a gate, which outlives it; left when it is destroyed. False when
  // the gate refused.
  class [[nodiscard]] Permit {
   public:
    Permit(Permit&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (gate_ != nullptr) gate_->release();
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class Gate;
    explicit Permit(Gate* gate) : gate_(gate) {}
    Gate* gate_;
  };
  Permit acquire(Clock::time_point now);
  // Counts a request that waits to enter, while it lasts. False when too many do.
  class [[nodiscard]] Waiting {
   public:
    explicit Waiting(Gate& gate) : gate_(gate), counts_(gate.waiting_++ < kMaxWaiting) {}
    ~Waiting() { --gate_.waiting_; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    explicit operator bool() const { return counts_; }

   private:
    static constexpr int kMaxWaiting = 500;
    Gate& gate_;
    const bool counts_;
  };
  // A connection to the event source was made, so it exists.
  void mark_known() { known_ = true; }
  [[nodiscard]] bool is_known() const { return known_; }
  // Holds from now on; requests inside stay.
  void set(GateLimits limits);
  [[nodiscard]] std::int64_t inside() const;
  // True when a new gate would behave the same from `now` on, so that this one can be forgotten.
  [[nodiscard]] bool unused(Clock::time_point now) const;

 private:
  void release();
  [[nodiscard]] double tokens(Clock::time_point now) const;

  std::atomic<bool> known_ = false;
  std::atomic<int> waiting_ = 0;
  mutable std::mutex mutex_;
  GateLimits limits_;
  std::int64_t inside_ = 0;
  double tokens_ = 0;
  Clock::time_point filled_{};  // when tokens_ was right; the epoch: it was never used
};

// The one gate of each event source, whichever loop asks. Any thread.
class Gates {
 public:
  explicit Gates(GateLimits limits) : limits_(limits) {}

  // The gate of this host; the same object for as long as anybody holds it.
  std::shared_ptr<Gate> of(const std::string& host);
  // For all gates, present and future.
  void set(GateLimits limits);

 private:
  std::mutex mutex_;
  GateLimits limits_;
  std::unordered_map<std::string, std::weak_ptr<Gate>> gates_;
  std::size_t tidy_at_ = 1'000;
};

}  // namespace gitops::router
