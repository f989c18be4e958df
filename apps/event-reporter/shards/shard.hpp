#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/control_plane/inventory.hpp"
#include "common/core/error.hpp"

namespace gitops::reporter {

// The replica that reports an application of this name. The namespace does not count.
using control_plane::shard_of;
// Returns the shard of an object's key, whose part after the last '/' is the name.
std::uint32_t shard_of_key(std::string_view key, std::uint32_t replicas);
// Returns the name of the key's shard in this layout, for Ledger::GroupOf.
std::string group_of_key(std::string_view key, std::uint32_t replicas);

// The share of the applications that this process reports.
struct Shard {
  std::uint32_t replicas = 1;  // 0 and 1: everything
  std::uint32_t ordinal = 0;

  [[nodiscard]] bool owns(std::string_view name) const {
    return replicas <= 1 || shard_of(name, replicas) == ordinal;
  }
};

// Returns the own shard. `configured` (EVENT_REPORTER_SHARD) wins unless it is negative; otherwise
// the ordinal is the last part of the host name after a '-', as a StatefulSet sets it. With more than
// one replica, an ordinal that is missing, unreadable or not below `replicas` is an error, because
// such a process would report nothing.
Result<Shard> own_shard(std::int64_t replicas, std::int64_t configured, std::string_view hostname);

}  // namespace gitops::reporter
