#include "control-plane/projection/event_text.hpp"

#include <algorithm>
#include <chrono>

#include "common/core/text.hpp"

namespace gitops::control_plane_server {

Micros time_of(std::string_view time) {
  const auto parsed = parse_rfc3339(time);
  if (!parsed) return 0;
  return std::chrono::duration_cast<std::chrono::microseconds>(parsed->time_since_epoch()).count();
}

std::string display_text(std::string_view text, std::size_t max_bytes) {
  std::string out = shortened(text, max_bytes);
  std::ranges::replace(out, '\0', ' ');
  return out;
}

Result<std::string> key_text(JsonView view, std::string_view field, bool is_required,
                             std::size_t max_bytes) {
  const auto refuse = [field](std::string_view why) {
    return fail(ErrorCode::invalid_data, std::string(field) + " " + std::string(why));
  };
  const auto text = view.text();
  if (text.empty() && is_required) return refuse("is missing");
  if (text.size() > max_bytes) return refuse("is too long");
  if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return refuse("has a control character");
  }
  return std::string(text);
}

std::string time_text(Micros time) {
  if (time == 0) return {};
  const std::chrono::sys_time<std::chrono::microseconds> at{std::chrono::microseconds(time)};
  return format_rfc3339_millis(std::chrono::floor<std::chrono::milliseconds>(at));
}

Micros micros_at(WallTime time) {
  return std::chrono::microseconds(time.time_since_epoch()).count();
}

}  // namespace gitops::control_plane_server
