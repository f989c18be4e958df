#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "event-reporter/report/change_tracker.hpp"
#include "event-reporter/report/watch_lag.hpp"

namespace gitops::reporter {

// Applications as the objects of a ChangeTracker. Their parts are their resources.
class TrackedApplications final : public TrackedObjects {
 public:
  // `lag` is that of the watch of Applications, and outlives this object.
  explicit TrackedApplications(WatchLag& lag) : lag_(lag) {}

  [[nodiscard]] std::string tombstone(const std::string& key,
                                      const std::string& uid) const override;
  [[nodiscard]] bool have_parts() const override { return true; }
  [[nodiscard]] std::vector<ResourceId> parts(std::string_view text) const override;
  void taken_over(std::uint32_t shard) override { lag_.taken_over(shard); }

 private:
  WatchLag& lag_;
};

}  // namespace gitops::reporter
