#include "control-plane/accounts/service_accounts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Rows;
using store::Statement;

constexpr std::string_view kSelect =
    "SELECT id, name, is_admin, is_disabled, created_at FROM service_account WHERE account = $1";
constexpr std::string_view kWithId = " AND id = $2";
constexpr std::string_view kByName = " ORDER BY name";

constexpr Statement kAdd{
    .name = "accounts.add_service_account",
    .sql =
        "INSERT INTO service_account (account, id, name, is_admin, created_at) "
        "VALUES ($1, $2, $3, $4, $5)"};
constexpr Statement kOne{.name = "accounts.service_account",
                         .sql = store::joined<kSelect, kWithId>};
constexpr Statement kAll{.name = "accounts.service_accounts",
                         .sql = store::joined<kSelect, kByName>};
constexpr Statement kUpdate{
    .name = "accounts.update_service_account",
    .sql = "UPDATE service_account SET name = $3, is_admin = $4 WHERE account = $1 AND id = $2"};
constexpr Statement kSetDisabled{
    .name = "accounts.set_service_account_disabled",
    .sql = "UPDATE service_account SET is_disabled = $3 WHERE account = $1 AND id = $2"};
constexpr Statement kRemove{.name = "accounts.remove_service_account",
                            .sql = "DELETE FROM service_account WHERE account = $1 AND id = $2"};

constexpr std::array kStatements{kAdd, kOne, kAll, kUpdate, kSetDisabled, kRemove};

std::unexpected<Error> absent(std::string_view id) {
  return fail(ErrorCode::not_found, "there is no service account " + std::string(id));
}

Result<void> changed_one(const Result<Rows>& rows, std::string_view id, std::string_view name) {
  if (!rows && rows.error().code == ErrorCode::conflict) {
    return fail(ErrorCode::conflict,
                "a service account " + std::string(name) + " exists already in this account");
  }
  if (!rows) return std::unexpected(rows.error());
  if (rows->changed() == 0) return absent(id);
  return {};
}

Result<ServiceAccount> service_account_at(Connection& connection, std::int64_t account,
                                          const Rows& rows, std::size_t row) {
  ServiceAccount found{.id = rows.string(row, 0),
                       .name = rows.string(row, 1),
                       .is_admin = rows.number(row, 2) != 0,
                       .is_disabled = rows.number(row, 3) != 0,
                       .created_at = rows.number(row, 4),
                       .teams = {}};
  auto teams = team_ids_of(connection, account, found.id);
  if (!teams) return std::unexpected(std::move(teams.error()));
  found.teams = std::move(*teams);
  return found;
}

Result<void> check_request(Connection& connection, std::int64_t account,
                           const ServiceAccountRequest& request) {
  if (auto mistake = name_mistake(request.name); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto teams = list_teams(connection, account);
  if (!teams) return std::unexpected(teams.error());
  for (const auto& id : request.teams) {
    if (std::ranges::none_of(*teams, [&id](const Team& team) { return team.id == id; })) {
      return fail(ErrorCode::not_found, "there is no team " + id);
    }
  }
  return {};
}

Result<void> put_into_teams(Connection& connection, std::int64_t account, std::string_view id,
                            const std::vector<std::string>& teams) {
  if (auto left = leave_all_teams(connection, account, id); !left) return left;
  for (const auto& team : teams) {
    if (auto put = put_into_team(connection, account, team, id); !put) return put;
  }
  return {};
}

}  // namespace

Result<ServiceAccount> create_service_account(Connection& connection, std::int64_t account,
                                              const ServiceAccountRequest& request, Micros now) {
  if (auto checked = check_request(connection, account, request); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  const auto existing = list_service_accounts(connection, account);
  if (!existing) return std::unexpected(existing.error());
  if (existing->size() >= kMaxServiceAccounts) {
    return fail(ErrorCode::invalid_argument,
                "the account has 1,000 service accounts: remove some of them first");
  }
  const auto id = new_id();
  if (auto added =
          changed_one(connection.run(kAdd, {account, id, request.name, request.is_admin, now}), id,
                      request.name);
      !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto put = put_into_teams(connection, account, id, request.teams); !put) {
    return std::unexpected(std::move(put.error()));
  }
  return service_account_of_id(connection, account, id);
}

Result<ServiceAccount> update_service_account(Connection& connection, std::int64_t account,
                                              std::string_view id,
                                              const ServiceAccountRequest& request) {
  if (auto checked = check_request(connection, account, request); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (auto updated = changed_one(
          connection.run(kUpdate, {account, id, request.name, request.is_admin}), id, request.name);
      !updated) {
    return std::unexpected(std::move(updated.error()));
  }
  if (auto put = put_into_teams(connection, account, id, request.teams); !put) {
    return std::unexpected(std::move(put.error()));
  }
  return service_account_of_id(connection, account, id);
}

Result<void> set_service_account_disabled(Connection& connection, std::int64_t account,
                                          std::string_view id, bool is_disabled) {
  return changed_one(connection.run(kSetDisabled, {account, id, is_disabled}), id, {});
}

Result<void> remove_service_account(Connection& connection, std::int64_t account,
                                    std::string_view id) {
  if (auto removed = changed_one(connection.run(kRemove, {account, id}), id, {}); !removed) {
    return removed;
  }
  if (auto left = leave_all_teams(connection, account, id); !left) return left;
  const auto revoked = revoke_keys_of_user(connection, account, id);
  if (!revoked) return std::unexpected(revoked.error());
  return {};
}

Result<ServiceAccount> service_account_of_id(Connection& connection, std::int64_t account,
                                             std::string_view id) {
  const auto rows = connection.run(kOne, {account, id});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return absent(id);
  return service_account_at(connection, account, *rows, 0);
}

Result<std::vector<ServiceAccount>> list_service_accounts(Connection& connection,
                                                          std::int64_t account) {
  const auto rows = connection.run(kAll, {account});
  if (!rows) return std::unexpected(rows.error());
  std::vector<ServiceAccount> found;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    auto one = service_account_at(connection, account, *rows, row);
    if (!one) return std::unexpected(std::move(one.error()));
    found.push_back(std::move(*one));
  }
  return found;
}

std::span<const Statement> service_account_statements() {
  return kStatements;
}

}  // namespace gitops::control_plane_server
