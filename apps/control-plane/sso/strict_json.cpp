#include "control-plane/sso/strict_json.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gitops::control_plane_server::sso {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 16;

}  // namespace

Result<Json> parse_strict_object(std::string_view text, std::string_view what) {
  std::vector<std::set<std::string>> open;  // names in the objects that are open
  bool has_duplicate = false;
  bool is_too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, const Json& value) {
    is_too_deep = is_too_deep || depth > kMaxDepth;
    if (event == Json::parse_event_t::object_start) {
      open.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open.pop_back();
    } else if (event == Json::parse_event_t::key) {
      if (!open.back().insert(value.get<std::string>()).second) has_duplicate = true;
    }
    return true;
  };
  auto json = Json::parse(text, watch, false);
  const auto wrong = [what](const char* why) {
    return fail(ErrorCode::invalid_data, std::string(what) + " " + why);
  };
  if (json.is_discarded() || !json.is_object()) return wrong("is not a JSON object");
  if (has_duplicate) return wrong("has a name twice");
  if (is_too_deep) return wrong("is nested too deeply");
  return json;
}

}  // namespace gitops::control_plane_server::sso
