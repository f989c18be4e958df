#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_set>

namespace gitops::reporter {

// Decides which reports may hold a worker, so that slow objects leave workers to the others: those
// with slow reports hold at most half of the workers. An object is slow when its last report failed,
// or when its reads took longer than kSlowAfter (report_queue.hpp). Pure.
class SlowReports {
 public:
  explicit SlowReports(std::size_t workers) : places_(std::max<std::size_t>(1, workers / 2)) {}

  [[nodiscard]] bool is_slow(const std::string& key) const { return slow_.contains(key); }
  // Whether the report of a slow object may begin.
  [[nodiscard]] bool has_place() const { return held_.size() < places_; }

  // A report begins; that of a slow object takes a place.
  void begin(const std::string& key) {
    if (is_slow(key)) held_.insert(key);
  }
  // Its reads have taken long: its object is slow from now on. True when it may go on, with a place;
  // otherwise it has to end.
  [[nodiscard]] bool may_go_on(const std::string& key) {
    slow_.insert(key);
    if (held_.contains(key)) return true;
    if (!has_place()) return false;
    held_.insert(key);
    return true;
  }
  // The report ended, and returns its place. `slow`: it failed, or its reads took long.
  void end(const std::string& key, bool slow) {
    held_.erase(key);
    if (slow) {
      slow_.insert(key);
    } else {
      slow_.erase(key);
    }
  }

  [[nodiscard]] std::size_t places() const { return places_; }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] std::size_t slow() const { return slow_.size(); }

 private:
  std::size_t places_;
  std::unordered_set<std::string> slow_;
  std::unordered_set<std::string> held_;  // keys whose reports hold a place
};

}  // namespace gitops::reporter
