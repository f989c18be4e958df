#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

// Server-sent events (WHATWG HTML, section "Server-sent events") as text.
namespace gitops::http {

struct ServerSentEvent {
  std::string event = {};  // type; empty: "message"
  std::string data = {};
  std::string id = {};  // empty: no id of its own

  bool operator==(const ServerSentEvent&) const = default;
};

// Comment that keeps proxies from closing a silent connection; clients ignore it.
inline constexpr std::string_view kServerSentHeartbeat = ":\n\n";

// Appends an event. Data may be any text; each of its line ends (CR LF, CR, LF) arrives as LF.
// Error: ErrorCode::invalid_argument, for a type or id with a line end or NUL; nothing is appended
// then.
Result<void> append_event(std::string& out, const ServerSentEvent& event);

// Parses a stream of events from bytes as they arrive.
class ServerSentEventParser {
 public:
  // `max_event`: maximum bytes of one event or line; more is ErrorCode::too_large.
  explicit ServerSentEventParser(std::size_t max_event) : max_event_(max_event) {}

  // Returns the events that these bytes complete. An id applies to later events, too, as in
  // browsers. After an error the parser is unusable.
  Result<std::vector<ServerSentEvent>> feed(std::string_view bytes);
  // Time that the server requested before the next connection.
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const { return retry_; }

 private:
  void take_line(std::vector<ServerSentEvent>& events);

  std::size_t max_event_;
  std::string line_;
  bool at_start_ = true;   // a byte order mark may follow
  bool after_cr_ = false;  // a LF that follows belongs to the same line end
  bool has_data_ = false;
  ServerSentEvent event_;
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
};

}  // namespace gitops::http
