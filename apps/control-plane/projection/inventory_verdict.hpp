#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/control_plane/inventory.hpp"
#include "control-plane/projection/event.hpp"

namespace gitops::control_plane_server {

// The part of an object's row that decides whether an inventory has it.
struct InventoryRow {
  ObjectKey key = {};
  std::string uid = {};
  std::string manager = {};  // the Application's name, for its resources
  std::int64_t sequence = 0;
};

// Compares rows with an inventory (docs/reference/event-guarantees.md, "A database that goes back in time"). An object is gone when the
// inventory would have it and does not. Nothing is concluded about objects of other shards, of clusters and kinds that
// were not listed, of reporters without sequences, and about those that are newer than the inventory. Pure.
class InventoryVerdict {
 public:
  // The inventory outlives it.
  explicit InventoryVerdict(const control_plane::Inventory& inventory);

  // Takes the rows of one runtime and mode that are not gone, in the order of ObjectKey::owner_uid.
  void add(InventoryRow row);
  // Call it once, behind the last row.
  void finish() { end_owner(); }

  // Returns the rows so far whose objects are gone, each once.
  [[nodiscard]] std::vector<InventoryRow> take_gone() { return std::exchange(gone_, {}); }
  // Returns the uids of the Applications whose resources differ, and are to be told.
  [[nodiscard]] const std::vector<std::string>& again() const { return again_; }

 private:
  [[nodiscard]] bool holds(std::string_view name) const;
  [[nodiscard]] bool is_listed(const ObjectKey& key) const;
  void end_owner();
  void end(InventoryRow row);

  const control_plane::Inventory& inventory_;
  std::set<std::uint32_t> shards_;
  std::set<std::pair<std::string, std::string>> listed_;  // cluster and kind
  std::vector<InventoryRow> of_owner_;  // the rows of the present Application's resources
  std::vector<InventoryRow> gone_;
  std::vector<std::string> again_;
};

// Returns the event that ends an object of which the inventory says that it is gone.
[[nodiscard]] Event deletion_of(InventoryRow row, const control_plane::Inventory& inventory,
                                Micros now);

}  // namespace gitops::control_plane_server
