#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "common/core/work_queue.hpp"
#include "event-reporter/report/change_tracker.hpp"

namespace gitops::reporter {

// A queue without workers.
struct ReportsDouble final : ReportScheduler {
  explicit ReportsDouble(const Executor& executor) : queue(executor, 100) {}
  [[nodiscard]] DirtySet& dirty() override { return set; }
  void cancel(const KeyFilter& which) override {
    if (on_cancel) on_cancel(which);
  }
  [[nodiscard]] bool takes_events() const override { return true; }

  WorkQueue queue;
  DirtySet set{queue, {}};
  std::function<void(const KeyFilter&)> on_cancel = {};
};

// Objects without parts, whose tombstone is "key uid".
struct ObjectsDouble final : TrackedObjects {
  [[nodiscard]] std::string tombstone(const std::string& key,
                                      const std::string& uid) const override {
    return key + " " + uid;
  }
  [[nodiscard]] bool is_readable(const std::string& key) const override {
    return !away.contains(key);
  }
  void taken_over(std::uint32_t shard) override {
    if (on_taken_over) on_taken_over(shard);
  }

  std::set<std::string> away = {};
  std::function<void(std::uint32_t shard)> on_taken_over = {};
};

}  // namespace gitops::reporter
