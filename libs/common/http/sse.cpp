#include "common/http/sse.hpp"

#include <charconv>
#include <system_error>

namespace gitops::http {
namespace {

bool fits_in_line(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

void append_line(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\n");
}

}  // namespace

Result<void> append_event(std::string& out, const ServerSentEvent& event) {
  if (!fits_in_line(event.event) || !fits_in_line(event.id)) {
    return fail(ErrorCode::invalid_argument, "the type or id of an event holds a line end or NUL");
  }
  if (!event.id.empty()) append_line(out, "id", event.id);
  if (!event.event.empty()) append_line(out, "event", event.event);
  std::string_view rest = event.data;
  while (true) {
    const auto end = rest.find_first_of("\r\n");
    append_line(out, "data", rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  out.append("\n");
  return {};
}

Result<std::vector<ServerSentEvent>> ServerSentEventParser::feed(std::string_view bytes) {
  std::vector<ServerSentEvent> events;
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const auto end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (line_.size() + event_.data.size() > max_event_) {
      return fail(ErrorCode::too_large, "a server-sent event is larger than allowed");
    }
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    take_line(events);
    line_.clear();
  }
  return events;
}

// Processes a complete line.
void ServerSentEventParser::take_line(std::vector<ServerSentEvent>& events) {
  std::string_view line = line_;
  if (at_start_ && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  at_start_ = false;
  if (line.empty()) {
    if (has_data_) {
      event_.data.pop_back();  // the LF after the last line
      event_.id = last_id_;
      events.push_back(std::move(event_));
    }
    event_ = {};
    has_data_ = false;
    return;
  }
  const auto colon = line.find(':');
  const auto name = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    event_.data.append(value).append("\n");
    has_data_ = true;
  } else if (name == "event") {
    event_.event = value;
  } else if (name == "id") {
    if (!value.contains('\0')) last_id_ = value;
  } else if (name == "retry") {
    unsigned milliseconds = 0;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), milliseconds);
    if (error == std::errc() && end == value.data() + value.size()) {
      retry_ = std::chrono::milliseconds(milliseconds);
    }
  }
}

}  // namespace gitops::http
