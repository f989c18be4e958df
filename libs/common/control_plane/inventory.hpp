#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"

// The inventory of a reporter: the objects that exist, which it tells a control plane whose database went back in time
// (docs/reference/event-guarantees.md, "A database that goes back in time").
namespace gitops::control_plane {

// Returns the shard of an object with this name among `replicas`: FNV-1a (32 bits) of the name modulo their number, the
// documented shard function. An Application's resources have the Application's shard.
[[nodiscard]] std::uint32_t shard_of(std::string_view name, std::uint32_t replicas);

// Returns the digest of an object's resources as 32 hexadecimal digits: the first half of the SHA-256 of the sorted
// identities, a line each. An identity is "group/kind/namespace/name".
[[nodiscard]] std::string resources_digest(std::vector<std::string> identities);

// The body of POST /2.0/api/events/inventory, in one of two forms. A complete one has `objects`, a digest of the
// resources for each uid. The answer names the objects with another digest, and a second one tells their `resources`.
struct Inventory {
  // The kinds that the reporter has listed completely, on this cluster. Objects of others are not known.
  struct Listed {
    std::string cluster = {};  // URL of its API server; empty: the runtime's own cluster
    std::string kind = {};
    bool operator==(const Listed&) const = default;
  };
  std::string token = {};                  // the X-Intake-Resync that is answered
  bool is_of_applications = true;          // the reporter's mode: `app`, or `resource`
  std::vector<std::uint32_t> shards = {};  // that the reporter holds
  std::uint32_t replicas = 1;
  // Objects with a higher sequence are newer than the inventory.
  std::int64_t sequence = 0;
  std::vector<Listed> listed = {};  // mode `resource`
  bool is_complete = true;
  std::map<std::string, std::string, std::less<>> objects = {};  // digest of the resources by uid
  std::map<std::string, std::vector<std::string>, std::less<>> resources = {};  // identities by uid
  bool is_last = false;  // of the second form: nothing follows

  bool operator==(const Inventory&) const = default;
};

[[nodiscard]] std::string to_json(const Inventory& inventory);
// Reads what to_json() writes. Ignores unknown members. invalid_data names the wrong member.
[[nodiscard]] Result<Inventory> read_inventory(JsonParser& parser, std::string_view json);

}  // namespace gitops::control_plane
