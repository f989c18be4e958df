#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/control_plane/inventory.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/store/database.hpp"
#include "control-plane/intake/event_writer.hpp"
#include "control-plane/storage/inventory_store.hpp"

namespace gitops::control_plane_server {

// Takes the inventories of reporters, which were asked for them because the database went back in time: an object that
// a reporter does not have any more, and whose deletion was lost, gets the deletion as an event. Loop thread only.
class InventoryIntake {
 public:
  // Both outlive it.
  InventoryIntake(EventWriter& writer, store::Database& database, Metrics& metrics);

  // Ends the objects that the inventory would have and does not. Returns the uids of the Applications whose resources
  // are to be told, too; the resync ends when there are none. Errors: conflict (the reporter is asked for no inventory,
  // or for another one), those of the database and of EventWriter::store(). The same inventory may be taken again.
  Task<Result<std::vector<std::string>>> take(ReporterName reporter,
                                              control_plane::Inventory inventory,
                                              Deadline deadline);

 private:
  Task<Result<void>> end_gone(const ReporterName& reporter,
                              const control_plane::Inventory& inventory,
                              std::vector<InventoryRow> gone, Deadline deadline);
  Task<Result<std::vector<std::string>>> compare_objects(const ReporterName& reporter,
                                                         const control_plane::Inventory& inventory,
                                                         Deadline deadline);
  Task<Result<void>> compare_resources(const ReporterName& reporter,
                                       const control_plane::Inventory& inventory,
                                       Deadline deadline);

  EventWriter& writer_;
  store::Database& database_;
  Log log_{"intake"};
  Counter& ended_;
  Counter& resyncs_;
};

}  // namespace gitops::control_plane_server
