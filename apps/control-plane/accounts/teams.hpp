#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"

// Teams of an account in the database. Errors and threads as in account_store.hpp.
namespace gitops::control_plane_server {

struct TeamUser {
  std::string id;
  std::string name;
  std::string email;
};

struct Team {
  std::string id;
  std::string name;
  std::string type;  // "default" or "admin"
  std::vector<TeamUser> users = {};
  std::vector<TeamUser> service_accounts = {};  // without addresses
};

// The built-in teams: every member is in the first one, every administrator in the second one.
inline constexpr std::string_view kUsersTeam = "users";
inline constexpr std::string_view kAdminsTeam = "admins";
inline constexpr std::string_view kAdminTeamType = "admin";

// Returns why a team's name is refused, or an empty text. A name has 1 to 63 lower-case letters, digits and hyphens.
std::string team_name_mistake(std::string_view name);

// Creates a team and returns its id.
Result<std::string> create_team(store::Connection& connection, std::int64_t account,
                                std::string_view name, std::string_view type = "default");
// Returns the teams with their users, both sorted by name.
Result<std::vector<Team>> list_teams(store::Connection& connection, std::int64_t account);
// Returns the ids of the teams that a user or a service account is in.
Result<std::vector<std::string>> team_ids_of(store::Connection& connection, std::int64_t account,
                                             std::string_view user_id);
// Changes the name of a team that is not built in.
Result<void> rename_team(store::Connection& connection, std::int64_t account, std::string_view id,
                         std::string_view name);
Result<void> remove_team(store::Connection& connection, std::int64_t account, std::string_view id);
// Adds a user, who must be a member of the account, to a team.
Result<void> add_to_team(store::Connection& connection, std::int64_t account, std::string_view id,
                         std::string_view user_id);
Result<void> remove_from_team(store::Connection& connection, std::int64_t account,
                              std::string_view id, std::string_view user_id);

// Puts a member into the built-in teams that follow from its membership. Called by account_store.
Result<void> follow_membership(store::Connection& connection, std::int64_t account,
                               std::string_view user_id, bool is_admin);
// Puts a service account into a team, which may be a built-in one. Called by service_accounts.
Result<void> put_into_team(store::Connection& connection, std::int64_t account, std::string_view id,
                           std::string_view service_account);
Result<void> leave_all_teams(store::Connection& connection, std::int64_t account,
                             std::string_view user_id);

std::span<const store::Statement> team_statements();

}  // namespace gitops::control_plane_server
