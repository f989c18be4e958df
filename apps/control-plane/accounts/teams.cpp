#include "control-plane/accounts/teams.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

constexpr std::size_t kMaxTeamName = 63;

constexpr Statement kAddTeam{
    .name = "accounts.add_team",
    .sql = "INSERT INTO team (account, id, name, type) VALUES ($1, $2, $3, $4)"};
constexpr Statement kTeams{
    .name = "accounts.teams",
    .sql = "SELECT id, name, type FROM team WHERE account = $1 ORDER BY name"};
constexpr Statement kTeam{.name = "accounts.team",
                          .sql = "SELECT name FROM team WHERE account = $1 AND id = $2"};
constexpr Statement kTeamUsers{
    .name = "accounts.team_users",
    .sql =
        "SELECT t.team, u.id, u.name, u.email FROM team_member t JOIN users u "
        "ON u.id = t.user_id WHERE t.account = $1 ORDER BY t.team, u.name"};
constexpr Statement kTeamServiceAccounts{
    .name = "accounts.team_service_accounts",
    .sql =
        "SELECT t.team, s.id, s.name FROM team_member t JOIN service_account s "
        "ON s.account = t.account AND s.id = t.user_id WHERE t.account = $1 "
        "ORDER BY t.team, s.name"};
constexpr Statement kTeamsOfUser{
    .name = "accounts.teams_of_user",
    .sql = "SELECT team FROM team_member WHERE account = $1 AND user_id = $2 ORDER BY team"};
constexpr Statement kRenameTeam{.name = "accounts.rename_team",
                                .sql = "UPDATE team SET name = $3 WHERE account = $1 AND id = $2"};
constexpr Statement kRemoveTeam{.name = "accounts.remove_team",
                                .sql = "DELETE FROM team WHERE account = $1 AND id = $2"};
constexpr Statement kRemoveTeamUsers{
    .name = "accounts.remove_team_users",
    .sql = "DELETE FROM team_member WHERE account = $1 AND team = $2"};
constexpr Statement kAddTeamUser{
    .name = "accounts.add_team_user",
    .sql =
        "INSERT INTO team_member (account, team, user_id) VALUES ($1, $2, $3) "
        "ON CONFLICT DO NOTHING"};
constexpr Statement kRemoveTeamUser{
    .name = "accounts.remove_team_user",
    .sql = "DELETE FROM team_member WHERE account = $1 AND team = $2 AND user_id = $3"};
constexpr Statement kLeaveTeams{
    .name = "accounts.leave_teams",
    .sql = "DELETE FROM team_member WHERE account = $1 AND user_id = $2"};
// Adds a user to the built-in team of that name.
constexpr Statement kJoinNamed{
    .name = "accounts.join_named_team",
    .sql =
        "INSERT INTO team_member (account, team, user_id) SELECT account, id, $3 FROM team "
        "WHERE account = $1 AND name = $2 ON CONFLICT DO NOTHING"};
constexpr Statement kLeaveNamed{
    .name = "accounts.leave_named_team",
    .sql =
        "DELETE FROM team_member WHERE account = $1 AND user_id = $3 AND team IN "
        "(SELECT id FROM team WHERE account = $1 AND name = $2)"};

constexpr std::array kTeamStatements{
    kAddTeam,         kTeams,       kTeam,           kTeamUsers,          kRemoveTeam,
    kRemoveTeamUsers, kAddTeamUser, kRemoveTeamUser, kLeaveTeams,         kJoinNamed,
    kLeaveNamed,      kTeamsOfUser, kRenameTeam,     kTeamServiceAccounts};

Result<void> done(const Result<store::Rows>& rows) {
  if (!rows) return std::unexpected(rows.error());
  return {};
}

std::unexpected<Error> no_team(std::string_view id) {
  return fail(ErrorCode::not_found, "there is no team " + std::string(id));
}

std::unexpected<Error> team_exists(std::string_view name) {
  return fail(ErrorCode::conflict, "a team " + std::string(name) + " exists already");
}

Result<std::string> name_of_team(Connection& connection, std::int64_t account,
                                 std::string_view id) {
  const auto rows = connection.run(kTeam, {account, id});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return no_team(id);
  return rows->string(0, 0);
}

bool is_built_in(std::string_view name) {
  return name == kUsersTeam || name == kAdminsTeam;
}

std::unexpected<Error> built_in(std::string_view name) {
  return fail(ErrorCode::invalid_argument,
              "the team " + std::string(name) + " is built in: it follows the account's members");
}

}  // namespace

std::string team_name_mistake(std::string_view name) {
  const bool is_valid =
      !name.empty() && name.size() <= kMaxTeamName && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      });
  return is_valid ? std::string()
                  : "a team's name has 1 to 63 lower-case letters, digits and hyphens";
}

Result<std::string> create_team(Connection& connection, std::int64_t account, std::string_view name,
                                std::string_view type) {
  if (auto mistake = team_name_mistake(name); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  auto id = new_id();
  const auto added = connection.run(kAddTeam, {account, id, name, type});
  if (!added && added.error().code == ErrorCode::conflict) return team_exists(name);
  if (!added) return std::unexpected(added.error());
  return id;
}

Result<std::vector<Team>> list_teams(Connection& connection, std::int64_t account) {
  const auto rows = connection.run(kTeams, {account});
  if (!rows) return std::unexpected(rows.error());
  const auto users = connection.run(kTeamUsers, {account});
  if (!users) return std::unexpected(users.error());
  std::vector<Team> teams;
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    places.emplace(rows->string(row, 0), row);
    teams.push_back(
        {.id = rows->string(row, 0), .name = rows->string(row, 1), .type = rows->string(row, 2)});
  }
  for (std::size_t row = 0; row < users->size(); ++row) {
    const auto place = places.find(users->text(row, 0));
    if (place == places.end()) continue;
    teams[place->second].users.push_back({.id = users->string(row, 1),
                                          .name = users->string(row, 2),
                                          .email = users->string(row, 3)});
  }
  const auto service_accounts = connection.run(kTeamServiceAccounts, {account});
  if (!service_accounts) return std::unexpected(service_accounts.error());
  for (std::size_t row = 0; row < service_accounts->size(); ++row) {
    const auto place = places.find(service_accounts->text(row, 0));
    if (place == places.end()) continue;
    teams[place->second].service_accounts.push_back({.id = service_accounts->string(row, 1),
                                                     .name = service_accounts->string(row, 2),
                                                     .email = {}});
  }
  return teams;
}

Result<std::vector<std::string>> team_ids_of(Connection& connection, std::int64_t account,
                                             std::string_view user_id) {
  const auto rows = connection.run(kTeamsOfUser, {account, user_id});
  if (!rows) return std::unexpected(rows.error());
  std::vector<std::string> ids;
  for (std::size_t row = 0; row < rows->size(); ++row) ids.push_back(rows->string(row, 0));
  return ids;
}

Result<void> rename_team(Connection& connection, std::int64_t account, std::string_view id,
                         std::string_view name) {
  const auto before = name_of_team(connection, account, id);
  if (!before) return std::unexpected(before.error());
  if (is_built_in(*before)) return built_in(*before);
  if (auto mistake = team_name_mistake(name); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto renamed = connection.run(kRenameTeam, {account, id, name});
  if (!renamed && renamed.error().code == ErrorCode::conflict) return team_exists(name);
  return done(renamed);
}

Result<void> remove_team(Connection& connection, std::int64_t account, std::string_view id) {
  const auto name = name_of_team(connection, account, id);
  if (!name) return std::unexpected(name.error());
  if (is_built_in(*name)) return built_in(*name);
  if (auto left = done(connection.run(kRemoveTeamUsers, {account, id})); !left) return left;
  return done(connection.run(kRemoveTeam, {account, id}));
}

Result<void> add_to_team(Connection& connection, std::int64_t account, std::string_view id,
                         std::string_view user_id) {
  const auto name = name_of_team(connection, account, id);
  if (!name) return std::unexpected(name.error());
  if (is_built_in(*name)) return built_in(*name);
  const auto member = find_member(connection, account, user_id);
  if (!member) return std::unexpected(member.error());
  if (!*member) {
    return fail(ErrorCode::not_found,
                "user " + std::string(user_id) + " is no member of the account");
  }
  return done(connection.run(kAddTeamUser, {account, id, user_id}));
}

Result<void> remove_from_team(Connection& connection, std::int64_t account, std::string_view id,
                              std::string_view user_id) {
  const auto name = name_of_team(connection, account, id);
  if (!name) return std::unexpected(name.error());
  if (is_built_in(*name)) return built_in(*name);
  return done(connection.run(kRemoveTeamUser, {account, id, user_id}));
}

Result<void> follow_membership(Connection& connection, std::int64_t account,
                               std::string_view user_id, bool is_admin) {
  if (auto joined = done(connection.run(kJoinNamed, {account, kUsersTeam, user_id})); !joined) {
    return joined;
  }
  return done(connection.run(is_admin ? kJoinNamed : kLeaveNamed, {account, kAdminsTeam, user_id}));
}

Result<void> put_into_team(Connection& connection, std::int64_t account, std::string_view id,
                           std::string_view service_account) {
  return done(connection.run(kAddTeamUser, {account, id, service_account}));
}

Result<void> leave_all_teams(Connection& connection, std::int64_t account,
                             std::string_view user_id) {
  return done(connection.run(kLeaveTeams, {account, user_id}));
}

std::span<const Statement> team_statements() {
  return kTeamStatements;
}

}  // namespace gitops::control_plane_server
