#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/log.hpp"
#include "common/daemon/daemon.hpp"
#include "common/http/router.hpp"
#include "event-reporter/report/managed_clusters.hpp"
#include "event-reporter/report/resource_reporter.hpp"
#include "event-reporter/shared_parts.hpp"

namespace gitops::reporter {

// The parts of mode `resource`, which reports the kinds of resource_kinds(). Members are in order of
// dependence: later ones use earlier ones. Loop thread only.
class ResourceMode {
 public:
  static constexpr std::string_view kReported = "resources";
  static constexpr const char* kLeases = "event-reporter-resource";  // prefix of the names
  static constexpr bool kIsOfApplications = false;

  // `shared` outlives it.
  ResourceMode(const DaemonContext& context, SharedParts& shared);

  // Starts the tasks of `group`.
  void start(TaskGroup& group);
  [[nodiscard]] ResourceReporter& reporter() { return reporter_; }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks();
  [[nodiscard]] StatusReport status() const;
  // Returns the main port's routes, besides those of both modes.
  [[nodiscard]] static std::vector<http::Route> routes() { return {}; }
  // Returns the setting of this mode that the start's log line shows.
  static Field log_field(const Config& config) {
    return {"managed_clusters", config.managed_clusters};
  }

 private:
  ResourceReporter reporter_;
  std::optional<ManagedClusters> clusters_;
};

}  // namespace gitops::reporter
