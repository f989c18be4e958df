#include "control-plane/storage/reporter_row.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kEpochBytes = 8;
// A reporter cannot send the counter to its end.
constexpr std::int64_t kMaxPosition = 1'000'000'000'000'000;

}  // namespace

std::string to_string(const IntakePosition& position) {
  return position.epoch + ':' + std::to_string(position.number);
}

std::optional<IntakePosition> read_position(std::string_view text) {
  const auto colon = text.find(':');
  if (colon != 2 * kEpochBytes) return std::nullopt;
  IntakePosition position{.epoch = std::string(text.substr(0, colon))};
  const auto* const begin = text.data() + colon + 1;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, position.number);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (position.number < 0 || position.number > kMaxPosition) return std::nullopt;
  return position;
}

std::string epoch_of(std::string_view identity) {
  const auto sum = sha256(identity);
  return hex_encode(bytes_of(sum).substr(0, kEpochBytes));
}

ReporterRow reporter_row(const store::Rows& rows, std::size_t row, std::size_t first) {
  return {.position = rows.number(row, first),
          .sequence = rows.number(row, first + 1),
          .resync = rows.string(row, first + 2),
          .seen_at = rows.number(row, first + 3)};
}

ReporterContact joined(const ReporterContact& a, const ReporterContact& b, std::string_view epoch) {
  ReporterContact both{
      .seen = a.seen, .sequence = std::max(a.sequence, b.sequence), .at = std::max(a.at, b.at)};
  const auto rank = [epoch](const std::optional<IntakePosition>& seen) {
    if (!seen) return std::pair(0, std::int64_t{0});
    return std::pair(seen->epoch == epoch ? 2 : 1, seen->number);
  };
  if (rank(b.seen) > rank(a.seen)) both.seen = b.seen;
  return both;
}

ReporterRow advanced(const std::optional<ReporterRow>& stored, const ReporterContact& contact,
                     std::string_view epoch) {
  ReporterRow row = stored.value_or(ReporterRow{});
  const auto& seen = contact.seen;
  const bool is_same_epoch = seen && seen->epoch == epoch;
  const bool went_back = seen && (!is_same_epoch || seen->number > row.position);
  // Never a number that the reporter was told already.
  if (is_same_epoch) row.position = std::max(row.position, seen->number);
  ++row.position;
  // A stored token may be that of a resync which has ended since, in a time that the database has lost; its reporter
  // does not serve it again. One of this epoch also comes with events that were under way when it was made.
  const bool is_asked = !is_same_epoch && row.resync.starts_with(std::string(epoch) + '-');
  if (went_back && !is_asked) {
    row.resync = std::string(epoch) + '-' + std::to_string(row.position);
  }
  row.sequence = std::max(row.sequence, contact.sequence);
  row.seen_at = std::max(row.seen_at, contact.at);
  return row;
}

}  // namespace gitops::control_plane_server
