#include "control-plane/views/view_json.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "common/core/time.hpp"

namespace gitops::control_plane_server {
namespace {

// The bounds of GraphQL's Int.
constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int32_t>::min();

}  // namespace

void ObjectJson::number(std::string_view key, std::int64_t value) {
  writer_.begin(key) += std::to_string(std::clamp(value, kSmallest, kLargest));
}

void ObjectJson::number_or_null(std::string_view key, JsonView value) {
  if (!value.is_integer() || value.number() > kLargest || value.number() < kSmallest) {
    null(key);
  } else {
    number(key, value.number());
  }
}

}  // namespace gitops::control_plane_server
