#include "control-plane/accounts/revocations.hpp"

#include <array>

#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Rows;
using store::Statement;

constexpr Statement kAddRevocation{.name = "accounts.add_revocation",
                                   .sql =
                                       "INSERT INTO revocation (id, account, subject, runtime, at) "
                                       "VALUES ($1, $2, $3, $4, $5)"};
constexpr Statement kAddAccountChange{
    .name = "accounts.add_account_change",
    .sql =
        "INSERT INTO revocation (id, account, subject, runtime, at) "
        "VALUES ($1, $2, (SELECT id FROM account WHERE number = $2), '', $3)"};
constexpr Statement kRevocationsSince{
    .name = "accounts.revocations_since",
    .sql = "SELECT id, subject FROM revocation WHERE at >= $1 ORDER BY at, id"};
constexpr Statement kPendingTunnels{.name = "accounts.pending_tunnels",
                                    .sql =
                                        "SELECT r.id, a.id, r.runtime, r.at FROM revocation r JOIN "
                                        "account a ON a.number = r.account "
                                        "WHERE r.runtime <> '' ORDER BY r.at, r.id LIMIT 1000"};
constexpr Statement kFinishTunnel{.name = "accounts.finish_tunnel",
                                  .sql = "UPDATE revocation SET runtime = '' WHERE id = $1"};
constexpr Statement kRemoveRevocations{
    .name = "accounts.remove_revocations",
    .sql = "DELETE FROM revocation WHERE at < $1 AND (runtime = '' OR at < $2)"};

constexpr std::array kRevocationStatements{kAddRevocation,  kAddAccountChange, kRevocationsSince,
                                           kPendingTunnels, kFinishTunnel,     kRemoveRevocations};

}  // namespace

Result<void> add_revocation(Connection& connection, const Revocation& revocation, Micros now) {
  return connection.execute(
      kAddRevocation, {new_id(), revocation.account, revocation.subject, revocation.runtime, now});
}

Result<void> add_account_change(Connection& connection, std::int64_t account, Micros now) {
  return connection.execute(kAddAccountChange, {new_id(), account, now});
}

Result<std::vector<RecordedRevocation>> revocations_since(Connection& connection, Micros since) {
  const auto rows = connection.run(kRevocationsSince, {since});
  if (!rows) return std::unexpected(rows.error());
  std::vector<RecordedRevocation> found;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    found.push_back({.id = rows->string(row, 0), .subject = rows->string(row, 1)});
  }
  return found;
}

Result<std::vector<PendingTunnel>> pending_tunnels(Connection& connection) {
  const auto rows = connection.run(kPendingTunnels, {});
  if (!rows) return std::unexpected(rows.error());
  std::vector<PendingTunnel> found;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    found.push_back({.id = rows->string(row, 0),
                     .account = rows->string(row, 1),
                     .runtime = rows->string(row, 2),
                     .since = rows->number(row, 3)});
  }
  return found;
}

Result<void> finish_tunnel(Connection& connection, std::string_view id) {
  return connection.execute(kFinishTunnel, {id});
}

Result<void> remove_old_revocations(Connection& connection, Micros now) {
  return connection.execute(kRemoveRevocations, {now - kRevocationsKept, now - kTunnelsKept});
}

std::span<const Statement> revocation_statements() {
  return kRevocationStatements;
}

}  // namespace gitops::control_plane_server
