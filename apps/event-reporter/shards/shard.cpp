#include "event-reporter/shards/shard.hpp"

#include <charconv>
#include <limits>
#include <system_error>

namespace gitops::reporter {

std::uint32_t shard_of_key(std::string_view key, std::uint32_t replicas) {
  return shard_of(key.substr(key.rfind('/') + 1), replicas);
}

std::string group_of_key(std::string_view key, std::uint32_t replicas) {
  return "shard " + std::to_string(shard_of_key(key, replicas)) + " of " + std::to_string(replicas);
}

Result<Shard> own_shard(std::int64_t replicas, std::int64_t configured, std::string_view hostname) {
  if (replicas <= 1) return Shard{};
  if (replicas > std::numeric_limits<std::int32_t>::max()) {
    return fail(ErrorCode::invalid_argument, "too many replicas: " + std::to_string(replicas));
  }
  std::int64_t ordinal = configured;
  if (ordinal < 0) {
    const auto dash = hostname.rfind('-');
    const auto token = dash == std::string_view::npos ? hostname : hostname.substr(dash + 1);
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), ordinal);
    if (token.empty() || error != std::errc{} || end != token.data() + token.size() ||
        ordinal < 0) {
      return fail(ErrorCode::invalid_argument,
                  "host name \"" + std::string(hostname) +
                      "\" does not end in an ordinal; set EVENT_REPORTER_SHARD");
    }
  }
  if (ordinal >= replicas) {
    return fail(ErrorCode::invalid_argument, "shard " + std::to_string(ordinal) +
                                                 " does not exist among " +
                                                 std::to_string(replicas) + " replicas");
  }
  return Shard{.replicas = static_cast<std::uint32_t>(replicas),
               .ordinal = static_cast<std::uint32_t>(ordinal)};
}

}  // namespace gitops::reporter
