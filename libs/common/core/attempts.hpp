#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/core/time.hpp"

namespace gitops {

// Limits how often each key may do something, as an address may try wrong credentials: a token bucket of `burst`
// attempts for each key, refilled by one every `period`. Remembers the keys that tried last. Pure.
class Attempts {
 public:
  struct Options {
    std::size_t burst = 20;
    std::chrono::milliseconds period{3'000};
    std::size_t max_keys = 10'000;
  };
  explicit Attempts(Options options) : options_(options) {}

  // Zero: it may try; otherwise how long it has to wait.
  [[nodiscard]] Clock::duration wait_of(std::string_view key, Clock::time_point now) const;
  void spend(std::string_view key, Clock::time_point now);
  [[nodiscard]] std::size_t keys() const { return known_.size(); }

 private:
  struct Entry {
    Clock::time_point empty_at;  // when the key has all its attempts again
    std::list<std::string>::iterator place;
  };
  Options options_;
  std::list<std::string> order_;  // spent last: at the end
  std::unordered_map<std::string, Entry> known_;
};

}  // namespace gitops
