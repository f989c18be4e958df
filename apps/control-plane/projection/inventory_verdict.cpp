#include "control-plane/projection/inventory_verdict.hpp"

namespace gitops::control_plane_server {
namespace {

// "group/kind/namespace/name", as reporters write it.
std::string identity_of(const ObjectKey& key) {
  std::string identity;
  for (const auto* part : {&key.group, &key.kind, &key.object_namespace, &key.name}) {
    if (part != &key.group) identity += '/';
    identity += *part;
  }
  return identity;
}

}  // namespace

InventoryVerdict::InventoryVerdict(const control_plane::Inventory& inventory)
    : inventory_(inventory), shards_(inventory.shards.begin(), inventory.shards.end()) {
  for (const auto& [cluster, kind] : inventory.listed) {
    listed_.emplace(cluster.empty() ? kInCluster : std::string_view(cluster), kind);
  }
}

bool InventoryVerdict::holds(std::string_view name) const {
  return shards_.contains(control_plane::shard_of(name, inventory_.replicas));
}

bool InventoryVerdict::is_listed(const ObjectKey& key) const {
  return listed_.contains({key.cluster, key.kind});
}

void InventoryVerdict::add(InventoryRow row) {
  const auto& owner = row.key.owner_uid;
  if (!of_owner_.empty() && of_owner_.front().key.owner_uid != owner) end_owner();
  if (!holds(owner.empty() ? row.key.name : row.manager)) return;
  if (!owner.empty()) {
    of_owner_.push_back(std::move(row));
    return;
  }
  if (inventory_.is_complete && (inventory_.is_of_applications || is_listed(row.key)) &&
      !inventory_.objects.contains(row.uid)) {
    end(std::move(row));
  }
}

// The rows of an Application's resources are complete.
void InventoryVerdict::end_owner() {
  const auto rows = std::exchange(of_owner_, {});
  if (rows.empty()) return;
  const auto& owner = rows.front().key.owner_uid;
  const auto told = inventory_.resources.find(owner);
  if (told != inventory_.resources.end()) {
    const std::set<std::string_view> known(told->second.begin(), told->second.end());
    for (const auto& row : rows) {
      if (!known.contains(identity_of(row.key))) end(row);
    }
    return;
  }
  if (!inventory_.is_complete) return;
  const auto object = inventory_.objects.find(owner);
  if (object == inventory_.objects.end()) {
    for (const auto& row : rows) end(row);
    return;
  }
  std::vector<std::string> identities;
  for (const auto& row : rows) identities.push_back(identity_of(row.key));
  if (control_plane::resources_digest(std::move(identities)) != object->second) {
    again_.push_back(owner);
  }
}

void InventoryVerdict::end(InventoryRow row) {
  if (row.sequence <= 0 || row.sequence >= inventory_.sequence) return;
  gone_.push_back(std::move(row));
}

Event deletion_of(InventoryRow row, const control_plane::Inventory& inventory, Micros now) {
  Event event;
  event.is_deletion = true;
  auto& state = event.state;
  state.key = std::move(row.key);
  state.uid = std::move(row.uid);
  state.sequence = inventory.sequence;
  state.event_id = "inventory/" + inventory.token;
  state.presence = Presence::gone;
  state.changed_at = now;
  state.seen_at = now;
  return event;
}

}  // namespace gitops::control_plane_server
