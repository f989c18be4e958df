#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/control_plane/events.hpp"
#include "common/control_plane/inventory.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/report/change_tracker.hpp"

namespace gitops::reporter {

// Brings a control plane up to date whose database went back in time (docs/reference/event-guarantees.md): makes every event of the held
// shards due again, and tells which objects exist, so that the control plane ends those whose deletion it lost.
//
// The inventory has every object that exists or whose deletion is still due, so a state that was not delivered yet
// takes nothing away. Loop thread only; the arguments outlive it.
class Resync {
 public:
  using Listed = std::vector<control_plane::Inventory::Listed>;
  struct Options {
    bool is_of_applications = true;
    std::uint32_t replicas = 1;
    // Returns what was listed completely (Inventory::listed), without the kinds of objects that have no event yet and
    // cannot be read now; nothing while the objects are not known yet.
    std::function<std::optional<Listed>()> listed;
  };
  Resync(ChangeTracker& changes, Ledger& ledger, Delivery& delivery,
         control_plane::Client& platform, Options options, Metrics& metrics);

  // Runs until it is cancelled.
  Task<> run();
  // Asks the control plane where its database is while there is no event that could show it, as of shards without an
  // object. Runs until it is cancelled.
  Task<> ask_while_silent();
  // Returns an entry of /statusz while a resync runs.
  [[nodiscard]] StatusReport status() const;

 private:
  Task<> serve(const std::string& token);
  Task<Result<void>> tell(const std::string& token, Sequence sequence, Deadline time_limit);
  Task<control_plane::Inventory> until_known(const std::string& token, Sequence sequence,
                                             Deadline time_limit);
  Task<Result<void>> add_objects(control_plane::Inventory& inventory);
  Task<Result<void>> tell_resources(control_plane::Inventory inventory,
                                    std::vector<std::string> uids);
  Task<Result<std::vector<std::string>>> post(const control_plane::Inventory& inventory);
  Task<Result<std::vector<std::string>>> resources_of(const std::string& key);

  ChangeTracker& changes_;
  Ledger& ledger_;
  Delivery& delivery_;
  control_plane::Client& platform_;
  Options options_;
  Log log_{"resync"};
  RepeatFilter repeats_{std::chrono::minutes(1)};
  std::string last_error_;
  Counter& resyncs_;
};

}  // namespace gitops::reporter
