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
  std::string event = {};  // its type; empty: "message"
  std::string data = {};
  std::string id = {};  // empty: none of its own

  bool operator==(const ServerSentEvent&) const = default;
};

// A comment: keeps proxies from closing a silent connection; clients ignore it.
inline constexpr std::string_view kServerSentHeartbeat = ":\n\n";

// Appends an event. Data may hold any text; each of its line ends (CR LF, CR, LF) arrives as LF.
// A type or id that holds a line end or NUL is ErrorCode::invalid_argument, and nothing is
// appended.
Result<void> append_event(std::string& out, const ServerSentEvent& event);

// Reads a stream of events from bytes as they come.
class ServerSentEventParser {
 public:
  // `max_event`: bytes of one event or line; more is ErrorCode::too_large.
  explicit ServerSentEventParser(std::size_t max_event) : max_event_(max_event) {}

  // The events that these bytes complete. An id stays in force for the events that follow, as
  // browsers do it. After an error the parser is of no use.
  Result<std::vector<ServerSentEvent>> feed(std::string_view bytes);
  // What the server asked to wait before the next connection.
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
