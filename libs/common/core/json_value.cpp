#include "common/core/json_value.hpp"

#include <limits>

#include <nlohmann/json.hpp>

namespace gitops {

nlohmann::json parse_json_object(std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return nullptr;
  return json;
}

const nlohmann::json& value_at(const nlohmann::json& json,
                               std::initializer_list<std::string_view> path) {
  static const nlohmann::json null;
  const nlohmann::json* at = &json;
  for (const std::string_view name : path) {
    if (!at->is_object()) return null;
    const auto found = at->find(name);
    if (found == at->end()) return null;
    at = &*found;
  }
  return *at;
}

std::string string_at(const nlohmann::json& json, std::initializer_list<std::string_view> path) {
  const nlohmann::json& value = value_at(json, path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<std::int64_t> integer_at(const nlohmann::json& json,
                                       std::initializer_list<std::string_view> path) {
  const nlohmann::json& value = value_at(json, path);
  if (!value.is_number_integer()) return std::nullopt;
  // An unsigned number is stored when it is not negative; it may exceed the signed range.
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMax) return std::nullopt;
  return value.get<std::int64_t>();
}

std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace gitops
