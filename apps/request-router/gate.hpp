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
  std::int64_t rate = 0;         // requests per second; bursts of twice that
  std::int64_t concurrency = 0;  // concurrent requests
};

// Limits the requests to one event source. Time is an argument. Any thread.
class Gate {
 public:
  explicit Gate(GateLimits limits) : limits_(limits) {}

  // Permit of one request, released on destruction. The gate must outlive it. False if the gate
  // refused.
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
  // Counts a waiting request during its life. False at the limit of waiting requests.
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
  // Records that a connection to the event source was made, so that it exists.
  void mark_known() { known_ = true; }
  [[nodiscard]] bool is_known() const { return known_; }
  // Sets the limits from now on; admitted requests stay.
  void set(GateLimits limits);
  [[nodiscard]] std::int64_t inside() const;
  // Returns true if a new gate would behave the same from `now` on, so that this one can be
  // removed.
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
  Clock::time_point filled_{};  // time of tokens_; the epoch: never used
};

// Registry of gates: one for each event source, shared by all loops. Any thread.
class Gates {
 public:
  explicit Gates(GateLimits limits) : limits_(limits) {}

  // Returns the gate of this host; the same object while it is in use.
  std::shared_ptr<Gate> of(const std::string& host);
  // Sets the limits of all gates, present and future.
  void set(GateLimits limits);

 private:
  std::mutex mutex_;
  GateLimits limits_;
  std::unordered_map<std::string, std::weak_ptr<Gate>> gates_;
  std::size_t tidy_at_ = 1'000;
};

}  // namespace gitops::router
