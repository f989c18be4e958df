#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::reporter {

// An application, by views into texts of the caller.
struct AppName {
  std::string_view ns;
  std::string_view name;
};

// The answer to GET /app-distribution?shardings=<shardings>, JSON: for each sharding asked for (a
// list separated by commas; none: "default") how many applications each shard has, shards without
// any left out, and the shard of each application by "<namespace>/<name>". There is one way to
// distribute, whatever name is asked for, as in the peer. Shardings stay in the order of the
// question, without repetitions; shards are in order of their numbers, applications of their names.
// invalid_argument: more than 16 different shardings.
Result<std::string> app_distribution(std::span<const AppName> apps, std::uint32_t replicas,
                                     std::string_view shardings);

}  // namespace gitops::reporter
