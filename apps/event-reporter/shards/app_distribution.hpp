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

// Returns the response to GET /app-distribution?shardings=<shardings>, in JSON. For each requested
// sharding (a comma-separated list; none means "default") it has the number of applications in each
// shard that has some, and the shard of each application by "<namespace>/<name>". All shardings have
// the same distribution, as in the peer. Shardings are in the order of the request, without
// repetitions; shards are sorted by number, applications by name. invalid_argument: more than 16
// shardings.
Result<std::string> app_distribution(std::span<const AppName> apps, std::uint32_t replicas,
                                     std::string_view shardings);

}  // namespace gitops::reporter
