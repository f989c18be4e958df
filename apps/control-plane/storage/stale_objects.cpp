#include "control-plane/storage/stale_objects.hpp"

#include <array>

#include "control-plane/storage/retention.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

// Reporters that name themselves send sequences, and post an inventory when it is needed.
constexpr Statement kRuntimes{
    .name = "stale.runtimes",
    .sql =
        "SELECT runtime FROM reporter WHERE account = $1 AND name = 'application' AND "
        "seen_at >= $2"};
// The last conditions are asked of the newest row: another replica may have stored an event of it meanwhile. One that it
// stores just now is passed over, since the two could wait for each other.
constexpr Statement kMark{
    .name = "stale.mark",
    .sql =
        "UPDATE object SET presence = 2 WHERE account = $1 AND id IN (SELECT id FROM object WHERE "
        "account = $1 AND runtime = $2 AND presence = 0 AND origin = 0 AND sequence = 0 AND "
        "seen_at < $3 LIMIT $4) AND presence = 0 AND seen_at < $3",
    .postgres =
        "UPDATE object SET presence = 2 WHERE account = $1 AND id = ANY (ARRAY(SELECT id FROM "
        "object WHERE account = $1 AND runtime = $2 AND presence = 0 AND origin = 0 AND "
        "sequence = 0 AND seen_at < $3 ORDER BY id LIMIT $4 FOR UPDATE SKIP LOCKED)) AND "
        "presence = 0 AND seen_at < $3"};
constexpr std::array kStatements{kRuntimes, kMark};

}  // namespace

Result<StaleMarks> mark_stale_objects(Connection& connection, Micros now, std::int64_t most) {
  const auto accounts = account_numbers(connection);
  if (!accounts) return std::unexpected(accounts.error());
  StaleMarks marks;
  for (const auto account : *accounts) {
    const auto before = marks.objects;
    const auto runtimes = connection.run(kRuntimes, {account, now - kReportPeriod});
    if (!runtimes) return std::unexpected(runtimes.error());
    for (std::size_t row = 0; row < runtimes->size() && marks.objects < most; ++row) {
      const auto changed = connection.run(
          kMark, {account, runtimes->text(row, 0), now - kStaleAfter, most - marks.objects});
      if (!changed) return std::unexpected(changed.error());
      marks.objects += changed->changed();
    }
    if (marks.objects > before) marks.accounts.push_back(account);
  }
  return marks;
}

std::span<const Statement> stale_object_statements() {
  return kStatements;
}

}  // namespace gitops::control_plane_server
