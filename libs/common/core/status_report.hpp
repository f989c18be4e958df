#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/core/time.hpp"

// The status of a daemon as data: /statusz shows it as text and as JSON. Parts of a daemon return
// entries; only status_text() and status_json() write them. Entries hold no secrets.
namespace gitops {

// The state of one part of a daemon.
enum class StatusState : std::uint8_t {
  ok,           // it works; also the state of a plain fact, such as a count
  pending,      // not known yet, or about to work
  degraded,     // it works in part
  failed,       // it does not work
  standby,      // another replica does it
  unknown,      // its state cannot be read
  unavailable,  // it is not configured, or a requirement is missing since the start
};
std::string_view to_string(StatusState state);

// A count, a duration or a text of an entry.
struct StatusValue {
  std::string name;  // the key in JSON: "in_work"
  std::variant<std::uint64_t, std::chrono::milliseconds, std::string> value;
  std::optional<std::uint64_t> of = {};  // the limit or the total of a count
  // The words beside it in the text. Absent: the name, with blanks instead of underscores.
  std::optional<std::string> label = {};
};

// Maximum number of details of one entry; further ones are only counted.
inline constexpr std::size_t kMaxStatusDetails = 100;

// One part of a daemon: its state, and details for people and scripts.
struct StatusEntry {
  std::string name;
  StatusState state = StatusState::ok;
  std::string message = {};  // one sentence for people; may be empty
  std::optional<WallTime> since = {};
  std::vector<StatusValue> values = {};
  std::vector<StatusEntry> details = {};
  std::size_t omitted = 0;  // number of details that were left out

  void add_count(std::string key, std::uint64_t count, std::optional<std::string> label = {});
  // Adds a count with its limit or total: "3 of 16 under way".
  void add_count_of(std::string key, std::uint64_t count, std::uint64_t of,
                    std::optional<std::string> label = {});
  void add_duration(std::string key, std::chrono::milliseconds duration,
                    std::optional<std::string> label = {});
  void add_text(std::string key, std::string text, std::optional<std::string> label = {});
  // Adds a detail, or counts it when there are kMaxStatusDetails.
  void add_detail(StatusEntry detail);
};

// Returns an entry that is only a number: "users known: 3".
StatusEntry status_count(std::string name, std::uint64_t count);
// Returns an entry that is ok with `message` when `error` is empty, else failed with `error`.
StatusEntry status_entry(std::string name, std::string error, std::string message = {});

// Entries in the order in which people read them.
using StatusReport = std::vector<StatusEntry>;

// Returns all entries of the parts, in their order.
StatusReport joined(std::vector<StatusReport> parts);

// Returns a line for each entry, with its details indented below it: "NAME: MESSAGE since TIME,
// VALUES". An entry with a name alone shows its state instead. Texts are cut to 1,000 bytes, and a
// line end in one becomes a blank.
std::string status_text(const StatusReport& report);
// Returns a JSON array: [{"name":…,"state":…,"message":…,"since":…,"values":{…},"details":[…]}].
// Empty members are left out, except for the message. Texts are cut as in status_text().
std::string status_json(const StatusReport& report);

}  // namespace gitops
