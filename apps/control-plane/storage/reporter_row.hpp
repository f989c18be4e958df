#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/store/rows.hpp"
#include "control-plane/projection/object.hpp"

// The way by which a reporter finds out that the database went back in time (docs/reference/event-guarantees.md, "A database that goes back in time").
// Pure.
namespace gitops::control_plane_server {

// A position in the history of one reporter's events, as the heads have it: "<epoch>:<number>".
struct IntakePosition {
  std::string epoch = {};   // of the database: another one after a restore or a failover
  std::int64_t number = 0;  // counts the batches with events of the reporter, at most one a second

  bool operator==(const IntakePosition&) const = default;
};
[[nodiscard]] std::string to_string(const IntakePosition& position);
// Reads a head; nothing for another text.
[[nodiscard]] std::optional<IntakePosition> read_position(std::string_view text);

// Returns the epoch of a database with this identity: 16 hexadecimal digits.
[[nodiscard]] std::string epoch_of(std::string_view identity);

// A row of the table `reporter`.
struct ReporterRow {
  std::int64_t position = 0;
  std::int64_t sequence = 0;  // the highest of its events
  std::string resync = {};    // the token of a resync that is asked for; empty: none
  Micros seen_at = 0;
};

// Returns the row whose columns from `first` on are position, sequence, resync and seen_at.
[[nodiscard]] ReporterRow reporter_row(const store::Rows& rows, std::size_t row,
                                       std::size_t first = 0);

// The data of one batch about a reporter.
struct ReporterContact {
  // X-Intake-Seen: the last position that the reporter was told. Absent: none, or it does not know the head.
  std::optional<IntakePosition> seen = {};
  std::int64_t sequence = 0;
  Micros at = 0;
};

// Returns the contact of two events together. Of two positions that of the present epoch counts, then the farther one.
[[nodiscard]] ReporterContact joined(const ReporterContact& a, const ReporterContact& b,
                                     std::string_view epoch);

// Returns the row after a contact; `stored` is absent for a reporter that was not heard of. Asks for a resync when the
// reporter has seen another epoch, or a position that the row does not have yet: for another one when the database went
// back into an earlier resync.
[[nodiscard]] ReporterRow advanced(const std::optional<ReporterRow>& stored,
                                   const ReporterContact& contact, std::string_view epoch);

}  // namespace gitops::control_plane_server
