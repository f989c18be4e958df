#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control-plane/projection/object.hpp"

// Positions in the outboxes: each process numbers its rows of the table `change` from 1, in the order of its commits and
// without gaps. There is no order across processes, and none is needed. Pure.
namespace gitops::control_plane_server {

// The rows of one process in the outbox.
struct OutboxHead {
  std::string instance;
  std::int64_t first = 0;  // lower ones were removed by retention
  std::int64_t last = 0;
};

// The number of the last known change of each process.
struct ChangeCursor {
  std::map<std::string, std::int64_t, std::less<>> numbers = {};

  bool operator==(const ChangeCursor&) const = default;
};

// Returns the cursor as the text that a client gives back: "a1b2:7,c3d4:12"; "0" when there are no changes.
std::string to_string(const ChangeCursor& cursor);
// Reads that text. Nothing for any other text, and for more than 1,000 processes.
std::optional<ChangeCursor> read_cursor(std::string_view text);

// The cursor behind all changes of these outboxes.
ChangeCursor cursor_at(std::span<const OutboxHead> heads);

// The outboxes with changes behind a cursor.
struct ReadingPlan {
  struct Part {
    std::string instance;
    std::int64_t after = 0;
    std::int64_t last = 0;
  };
  std::vector<Part> parts = {};
  std::int64_t changes = 0;  // of all parts
  // Changes behind the cursor were removed before they were read, or the database went back in time.
  bool has_gap = false;
};
// Verdict on processes of the cursor that have no rows any more. They have ended or are idle, and retention has
// removed what they wrote.
enum class Vanished : std::uint8_t {
  are_known,   // the cursor was read within the time that rows are kept, so nothing was missed
  are_missed,  // their last changes may be unknown
};
ReadingPlan plan_reading(const ChangeCursor& cursor, std::span<const OutboxHead> heads,
                         Vanished vanished);

}  // namespace gitops::control_plane_server
