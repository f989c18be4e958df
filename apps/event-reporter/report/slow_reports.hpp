#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_set>

namespace gitops::reporter {

// Decides which reports may hold a worker: objects with slow reports hold at most half of the
// workers, which leaves workers to the others. An object is slow when its last report failed, or
// when its reads took longer than kSlowAfter (report_queue.hpp). Pure.
class SlowReports {
 public:
  explicit SlowReports(std::size_t workers) : places_(std::max<std::size_t>(1, workers / 2)) {}

  [[nodiscard]] bool is_slow(const std::string& key) const { return slow_.contains(key); }
  // Returns whether the report of a slow object may begin.
  [[nodiscard]] bool has_place() const { return held_.size() < places_; }

  // Begins a report; that of a slow object takes a permit.
  void begin(const std::string& key) {
    if (is_slow(key)) held_.insert(key);
  }
  // Reports that the reads have taken long: the object is slow from now on. Returns true when the
  // report may continue, with a permit; otherwise it must end.
  [[nodiscard]] bool may_go_on(const std::string& key) {
    slow_.insert(key);
    if (held_.contains(key)) return true;
    if (!has_place()) return false;
    held_.insert(key);
    return true;
  }
  // Ends the report and returns its permit. `slow`: it failed, or its reads took long.
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
  std::unordered_set<std::string> held_;  // keys whose reports hold a permit
};

}  // namespace gitops::reporter
