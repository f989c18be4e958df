#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

// Reads and writes the JSON of small control messages, without exceptions. Lists, watches and
// events are read by other means: nlohmann/json takes seven times their text in memory.
namespace gitops {

// Returns the object in `text`; a null value when the text is not JSON or not an object.
nlohmann::json parse_json_object(std::string_view text);

// Returns the value at a path of member names; a null value when there is none. The reference is
// into `json`, or to a constant.
const nlohmann::json& value_at(const nlohmann::json& json,
                               std::initializer_list<std::string_view> path);
// Returns the string at a path; empty when there is none.
std::string string_at(const nlohmann::json& json, std::initializer_list<std::string_view> path);
// Returns the integer at a path; nothing when there is none, or one that does not fit.
std::optional<std::int64_t> integer_at(const nlohmann::json& json,
                                       std::initializer_list<std::string_view> path);

// Returns compact text. Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const nlohmann::json& json);

}  // namespace gitops
