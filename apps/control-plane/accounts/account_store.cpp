#include "control-plane/accounts/account_store.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/provider_identities.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Rows;
using store::Statement;

constexpr std::size_t kMaxName = 128;

constexpr std::string_view kAccountSelect =
    "SELECT a.number, a.id, a.name, a.git_provider, a.git_api_url, a.shared_config_repo "
    "FROM account a";
constexpr std::string_view kOfNumber = " WHERE a.number = $1";
constexpr std::string_view kOfId = " WHERE a.id = $1";
constexpr std::string_view kOfName = " WHERE a.name = $1";
constexpr std::string_view kOfUser = " JOIN member m ON m.account = a.number WHERE m.user_id = $1";
constexpr std::string_view kByAccountName = " ORDER BY a.name";

constexpr Statement kAddAccount{.name = "accounts.add_account",
                                .sql =
                                    "INSERT INTO account (id, name, created_at) "
                                    "VALUES ($1, $2, $3) RETURNING number"};
constexpr Statement kAccountOfNumber{.name = "accounts.account_of_number",
                                     .sql = store::joined<kAccountSelect, kOfNumber>};
constexpr Statement kAccountOfId{.name = "accounts.account_of_id",
                                 .sql = store::joined<kAccountSelect, kOfId>};
constexpr Statement kAccountOfName{.name = "accounts.account_of_name",
                                   .sql = store::joined<kAccountSelect, kOfName>};
constexpr Statement kAccounts{.name = "accounts.accounts",
                              .sql = store::joined<kAccountSelect, kByAccountName>};
constexpr Statement kAccountsOfUser{.name = "accounts.accounts_of_user",
                                    .sql = store::joined<kAccountSelect, kOfUser, kByAccountName>};
constexpr Statement kAdmins{.name = "accounts.admins",
                            .sql =
                                "SELECT user_id FROM member WHERE account = $1 "
                                "AND is_admin = 1 ORDER BY user_id"};
constexpr Statement kSetGitSettings{.name = "accounts.set_git_settings",
                                    .sql =
                                        "UPDATE account SET git_provider = $2, git_api_url = "
                                        "$3, shared_config_repo = $4 WHERE number = $1"};
constexpr Statement kSuggestRepository{.name = "accounts.suggest_repository",
                                       .sql =
                                           "UPDATE account SET shared_config_repo = $2 "
                                           "WHERE number = $1 AND shared_config_repo = ''"};

constexpr std::string_view kUserSelect =
    "SELECT u.id, u.name, u.email, u.password, u.is_system_admin, u.is_disabled, "
    "u.active_account, u.created_at, u.seen_at";
constexpr std::string_view kFromUsers = " FROM users u";
constexpr std::string_view kUserWithId = " WHERE u.id = $1";
constexpr std::string_view kUserWithName = " WHERE u.name = $1";
constexpr std::string_view kByUserName = " ORDER BY u.name";
constexpr std::string_view kFromMembers =
    ", m.is_admin FROM member m JOIN users u ON u.id = m.user_id WHERE m.account = $1";
constexpr std::string_view kMemberWithId = " AND m.user_id = $2";

constexpr Statement kAddUser{
    .name = "accounts.add_user",
    .sql =
        "INSERT INTO users (id, name, email, password, is_system_admin, active_account, "
        "created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)"};
constexpr Statement kUserOfId{.name = "accounts.user_of_id",
                              .sql = store::joined<kUserSelect, kFromUsers, kUserWithId>};
constexpr Statement kUserOfName{.name = "accounts.user_of_name",
                                .sql = store::joined<kUserSelect, kFromUsers, kUserWithName>};
constexpr Statement kUsers{.name = "accounts.users",
                           .sql = store::joined<kUserSelect, kFromUsers, kByUserName>};
constexpr Statement kAnyUser{.name = "accounts.any_user", .sql = "SELECT id FROM users LIMIT 1"};
constexpr Statement kSetPassword{.name = "accounts.set_password",
                                 .sql = "UPDATE users SET password = $2 WHERE id = $1"};
constexpr Statement kReplacePassword{
    .name = "accounts.replace_password_hash",
    .sql = "UPDATE users SET password = $3 WHERE id = $1 AND password = $2"};
constexpr Statement kSetDisabled{.name = "accounts.set_disabled",
                                 .sql = "UPDATE users SET is_disabled = $2 WHERE id = $1"};
constexpr Statement kSetActiveAccount{.name = "accounts.set_active_account",
                                      .sql = "UPDATE users SET active_account = $2 WHERE id = $1"};
constexpr Statement kSetUserSeen{.name = "accounts.set_user_seen",
                                 .sql = "UPDATE users SET seen_at = $2 WHERE id = $1"};

constexpr Statement kPutMember{.name = "accounts.put_member",
                               .sql =
                                   "INSERT INTO member (account, user_id, is_admin) "
                                   "VALUES ($1, $2, $3) ON CONFLICT (account, user_id) "
                                   "DO UPDATE SET is_admin = excluded.is_admin"};
constexpr Statement kRemoveMember{.name = "accounts.remove_member",
                                  .sql = "DELETE FROM member WHERE account = $1 AND user_id = $2"};
constexpr Statement kMember{.name = "accounts.member",
                            .sql = store::joined<kUserSelect, kFromMembers, kMemberWithId>};
constexpr Statement kMembers{.name = "accounts.members",
                             .sql = store::joined<kUserSelect, kFromMembers, kByUserName>};

constexpr Statement kSetUserDetails{.name = "accounts.set_user_details",
                                    .sql = "UPDATE users SET name = $2, email = $3 WHERE id = $1"};
constexpr Statement kRemoveUser{.name = "accounts.remove_user",
                                .sql = "DELETE FROM users WHERE id = $1"};
// Changes nothing: it locks the row, so that two administrators cannot remove each other.
constexpr Statement kLockAccount{.name = "accounts.lock_account",
                                 .sql = "UPDATE account SET name = name WHERE number = $1"};
constexpr Statement kLockInstance{.name = "accounts.lock_instance",
                                  .sql = "UPDATE instance SET restores = restores WHERE one = 1"};
constexpr Statement kOtherAdmins{
    .name = "accounts.other_admins",
    .sql =
        "SELECT count(*) FROM member m JOIN users u ON u.id = m.user_id WHERE m.account = $1 "
        "AND m.is_admin = 1 AND u.is_disabled = 0 AND m.user_id <> $2"};
constexpr Statement kOtherSystemAdmins{
    .name = "accounts.other_system_admins",
    .sql = "SELECT count(*) FROM users WHERE is_system_admin = 1 AND is_disabled = 0 AND id <> $1"};

constexpr std::array kAccountStatements{kAddAccount,      kAccountOfNumber,  kAccountOfId,
                                        kAccountOfName,   kAccounts,         kAccountsOfUser,
                                        kAdmins,          kSetGitSettings,   kSuggestRepository,
                                        kAddUser,         kUserOfId,         kUserOfName,
                                        kUsers,           kAnyUser,          kSetPassword,
                                        kReplacePassword, kSetDisabled,      kSetActiveAccount,
                                        kSetUserSeen,     kPutMember,        kRemoveMember,
                                        kMember,          kMembers,          kSetUserDetails,
                                        kRemoveUser,      kLockAccount,      kLockInstance,
                                        kOtherAdmins,     kOtherSystemAdmins};

enum UserColumn : std::size_t {
  column_id,
  column_name,
  column_email,
  column_password,
  column_is_system_admin,
  column_is_disabled,
  column_active_account,
  column_created_at,
  column_seen_at,
  column_is_admin,  // of a member
};

User user_at(const Rows& rows, std::size_t row) {
  return {.id = rows.string(row, column_id),
          .name = rows.string(row, column_name),
          .email = rows.string(row, column_email),
          .password = rows.string(row, column_password),
          .is_system_admin = rows.number(row, column_is_system_admin) != 0,
          .is_disabled = rows.number(row, column_is_disabled) != 0,
          .active_account = rows.number(row, column_active_account),
          .created_at = rows.number(row, column_created_at),
          .seen_at = rows.number(row, column_seen_at)};
}

Member member_at(const Rows& rows, std::size_t row) {
  Member member{.user = user_at(rows, row), .is_admin = rows.number(row, column_is_admin) != 0};
  member.user.password.clear();
  return member;
}

// Returns the account in a row of kAccountSelect, with its administrators.
Result<Account> account_at(Connection& connection, const Rows& rows, std::size_t row) {
  Account account{.number = rows.number(row, 0),
                  .id = rows.string(row, 1),
                  .name = rows.string(row, 2),
                  .admins = {},
                  .git_provider = rows.string(row, 3),
                  .git_api_url = rows.string(row, 4),
                  .shared_config_repo = rows.string(row, 5)};
  const auto admins = connection.run(kAdmins, {account.number});
  if (!admins) return std::unexpected(admins.error());
  for (std::size_t admin = 0; admin < admins->size(); ++admin) {
    account.admins.push_back(admins->string(admin, 0));
  }
  return account;
}

Result<Account> one_account(Connection& connection, const Result<Rows>& rows,
                            std::string_view what) {
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return fail(ErrorCode::not_found, "there is no account " + std::string(what));
  return account_at(connection, *rows, 0);
}

Result<std::vector<Account>> all_accounts(Connection& connection, const Result<Rows>& rows) {
  if (!rows) return std::unexpected(rows.error());
  std::vector<Account> accounts;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    auto account = account_at(connection, *rows, row);
    if (!account) return std::unexpected(std::move(account.error()));
    accounts.push_back(std::move(*account));
  }
  return accounts;
}

Result<User> one_user(const Result<Rows>& rows, std::string_view what) {
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return fail(ErrorCode::not_found, "there is no user " + std::string(what));
  return user_at(*rows, 0);
}

// Turns an UPDATE that changed no row into not_found.
Result<void> changed_one(const Result<Rows>& rows, std::string_view what) {
  if (!rows) return std::unexpected(rows.error());
  if (rows->changed() == 0) {
    return fail(ErrorCode::not_found, "there is no " + std::string(what));
  }
  return {};
}

std::string user_label(std::string_view id) {
  return "user " + std::string(id);
}

}  // namespace

std::string name_mistake(std::string_view name) {
  const bool is_valid =
      !name.empty() && name.size() <= kMaxName && trimmed(name) == name && is_utf8(name) &&
      std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return is_valid ? std::string()
                  : "a name has 1 to 128 bytes of UTF-8, without control characters and without "
                    "blanks at its ends";
}

std::string user_name_mistake(std::string_view name) {
  if (auto mistake = name_mistake(name); !mistake.empty()) return mistake;
  for (const std::string_view reserved : {"runtime ", "service account ", "command line"}) {
    if (name.starts_with(reserved)) {
      return "a user's name does not begin with \"" + std::string(reserved) + "\"";
    }
  }
  return {};
}

Result<std::int64_t> account_number(const Caller& caller, std::string_view account_id) {
  if (account_id.empty() || account_id == caller.account->id) return caller.account->number;
  return fail(ErrorCode::not_found, "there is no account " + shortened(account_id, 64));
}

Result<Account> create_account(Connection& connection, const std::string& name, Micros now) {
  if (auto mistake = name_mistake(name); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  Account account;
  account.id = new_id();
  account.name = name;
  const auto added = connection.run(kAddAccount, {account.id, name, now});
  if (!added && added.error().code == ErrorCode::conflict) {
    return fail(ErrorCode::conflict, "an account " + name + " exists already");
  }
  if (!added) return std::unexpected(added.error());
  account.number = added->number(0, 0);
  for (const auto& [team, type] : {std::pair{kUsersTeam, std::string_view("default")},
                                   std::pair{kAdminsTeam, kAdminTeamType}}) {
    auto created = create_team(connection, account.number, team, type);
    if (!created) return std::unexpected(std::move(created.error()));
  }
  return account;
}

Result<Account> account_of_number(Connection& connection, std::int64_t number) {
  return one_account(connection, connection.run(kAccountOfNumber, {number}),
                     std::to_string(number));
}

Result<Account> account_of_id(Connection& connection, std::string_view id) {
  return one_account(connection, connection.run(kAccountOfId, {id}), id);
}

Result<Account> account_of_name(Connection& connection, std::string_view name) {
  return one_account(connection, connection.run(kAccountOfName, {name}), name);
}

Result<std::vector<Account>> list_accounts(Connection& connection) {
  return all_accounts(connection, connection.run(kAccounts));
}

Result<std::vector<Account>> accounts_of_user(Connection& connection, std::string_view user_id) {
  return all_accounts(connection, connection.run(kAccountsOfUser, {user_id}));
}

Result<void> set_git_settings(Connection& connection, std::int64_t account,
                              const GitSettings& settings) {
  return changed_one(connection.run(kSetGitSettings, {account, settings.provider, settings.api_url,
                                                      settings.shared_config_repo}),
                     "account " + std::to_string(account));
}

Result<std::string> suggest_shared_config_repo(Connection& connection, std::int64_t account,
                                               std::string_view repository) {
  const auto suggested = connection.run(kSuggestRepository, {account, repository});
  if (!suggested) return std::unexpected(suggested.error());
  auto found = account_of_number(connection, account);
  if (!found) return std::unexpected(std::move(found.error()));
  return std::move(found->shared_config_repo);
}

Result<User> create_user(Connection& connection, std::int64_t account, const NewUser& user,
                         Micros now) {
  if (auto mistake = user_name_mistake(user.name); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  User created{.id = user.id.empty() ? new_id() : user.id,
               .name = user.name,
               .email = user.email,
               .password = user.password,
               .is_system_admin = user.is_system_admin,
               .active_account = account,
               .created_at = now};
  const auto added =
      connection.run(kAddUser, {created.id, created.name, created.email, created.password,
                                created.is_system_admin, account, now});
  if (!added && added.error().code == ErrorCode::conflict) {
    return fail(ErrorCode::conflict, "a user " + user.name + " exists already");
  }
  if (!added) return std::unexpected(added.error());
  if (auto joined = put_member(connection, account, created.id, user.is_admin); !joined) {
    return std::unexpected(std::move(joined.error()));
  }
  return created;
}

Result<User> user_of_id(Connection& connection, std::string_view id) {
  return one_user(connection.run(kUserOfId, {id}), id);
}

Result<User> user_of_name(Connection& connection, std::string_view name) {
  return one_user(connection.run(kUserOfName, {name}), name);
}

Result<std::vector<User>> list_users(Connection& connection) {
  const auto rows = connection.run(kUsers);
  if (!rows) return std::unexpected(rows.error());
  std::vector<User> users;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    users.push_back(user_at(*rows, row));
    users.back().password.clear();
  }
  return users;
}

Result<bool> has_users(Connection& connection) {
  const auto rows = connection.run(kAnyUser);
  if (!rows) return std::unexpected(rows.error());
  return !rows->empty();
}

Result<void> set_password(Connection& connection, std::string_view user_id,
                          std::string_view password) {
  return changed_one(connection.run(kSetPassword, {user_id, password}), user_label(user_id));
}

Result<void> replace_password_hash(Connection& connection, std::string_view user_id,
                                   std::string_view before, std::string_view after) {
  return connection.execute(kReplacePassword, {user_id, before, after});
}

Result<void> set_disabled(Connection& connection, std::string_view user_id, bool is_disabled) {
  if (is_disabled) {
    if (auto ended = end_sessions_of(connection, user_id); !ended) return ended;
  }
  return changed_one(connection.run(kSetDisabled, {user_id, is_disabled}), user_label(user_id));
}

Result<void> set_user_details(Connection& connection, std::string_view user_id,
                              const std::string& name, std::string_view email) {
  if (auto mistake = user_name_mistake(name); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto set = connection.run(kSetUserDetails, {user_id, name, email});
  if (!set && set.error().code == ErrorCode::conflict) {
    return fail(ErrorCode::conflict, "a user " + name + " exists already");
  }
  return changed_one(set, user_label(user_id));
}

Result<void> remove_user(Connection& connection, std::string_view user_id) {
  if (auto kept = keep_administrators(connection, user_id); !kept) return kept;
  const auto accounts = accounts_of_user(connection, user_id);
  if (!accounts) return std::unexpected(accounts.error());
  for (const auto& account : *accounts) {
    if (auto left = remove_member(connection, account.number, user_id); !left) return left;
  }
  if (auto ended = end_sessions_of(connection, user_id); !ended) return ended;
  if (auto removed = remove_identities(connection, user_id); !removed) return removed;
  return changed_one(connection.run(kRemoveUser, {user_id}), user_label(user_id));
}

Result<void> set_active_account(Connection& connection, std::string_view user_id,
                                std::int64_t account) {
  return changed_one(connection.run(kSetActiveAccount, {user_id, account}), user_label(user_id));
}

Result<void> set_user_seen(Connection& connection, std::string_view user_id, Micros now) {
  return changed_one(connection.run(kSetUserSeen, {user_id, now}), user_label(user_id));
}

Result<void> put_member(Connection& connection, std::int64_t account, std::string_view user_id,
                        bool is_admin) {
  const auto put = connection.run(kPutMember, {account, user_id, is_admin});
  if (!put) return std::unexpected(put.error());
  return follow_membership(connection, account, user_id, is_admin);
}

Result<void> remove_member(Connection& connection, std::int64_t account, std::string_view user_id) {
  if (auto left = leave_all_teams(connection, account, user_id); !left) return left;
  if (auto revoked = revoke_keys_of_user(connection, account, user_id); !revoked) {
    return std::unexpected(std::move(revoked.error()));
  }
  return changed_one(connection.run(kRemoveMember, {account, user_id}),
                     "member " + std::string(user_id));
}

Result<User> managed_user(Connection& connection, const Caller& caller, std::string_view user_id) {
  auto user = user_of_id(connection, user_id);
  if (!user || caller.is_system_admin) return user;
  const auto member = find_member(connection, caller.account->number, user_id);
  if (!member) return std::unexpected(member.error());
  // A user of other accounts looks like one that does not exist.
  if (!*member) return fail(ErrorCode::not_found, "there is no user " + std::string(user_id));
  const auto accounts = accounts_of_user(connection, user_id);
  if (!accounts) return std::unexpected(accounts.error());
  if (user->is_system_admin || accounts->size() > 1) {
    return std::unexpected(Error{.code = ErrorCode::forbidden,
                                 .message = "The user belongs to other accounts, too: only an "
                                            "administrator of the installation may do this.",
                                 .http_status = 403});
  }
  return user;
}

Result<void> keep_administrator(Connection& connection, std::int64_t account,
                                std::string_view user_id) {
  if (auto locked = connection.execute(kLockAccount, {account}); !locked) return locked;
  const auto member = find_member(connection, account, user_id);
  if (!member) return std::unexpected(member.error());
  if (!*member || !(*member)->is_admin || (*member)->user.is_disabled) return {};
  const auto others = connection.run(kOtherAdmins, {account, user_id});
  if (!others) return std::unexpected(others.error());
  if (others->number(0, 0) > 0) return {};
  return fail(ErrorCode::conflict,
              "this user is the last administrator of the account: make another one first");
}

Result<void> keep_administrators(Connection& connection, std::string_view user_id) {
  if (auto locked = connection.execute(kLockInstance, {}); !locked) return locked;
  const auto user = user_of_id(connection, user_id);
  if (!user) return std::unexpected(user.error());
  if (user->is_system_admin && !user->is_disabled) {
    const auto others = connection.run(kOtherSystemAdmins, {user_id});
    if (!others) return std::unexpected(others.error());
    if (others->number(0, 0) == 0) {
      return fail(ErrorCode::conflict, "this user is the last administrator of the installation");
    }
  }
  const auto accounts = accounts_of_user(connection, user_id);
  if (!accounts) return std::unexpected(accounts.error());
  for (const auto& account : *accounts) {
    if (auto kept = keep_administrator(connection, account.number, user_id); !kept) return kept;
  }
  return {};
}

Result<std::optional<Member>> find_member(Connection& connection, std::int64_t account,
                                          std::string_view user_id) {
  const auto rows = connection.run(kMember, {account, user_id});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::optional<Member>();
  return std::optional(member_at(*rows, 0));
}

Result<std::vector<Member>> list_members(Connection& connection, std::int64_t account) {
  const auto rows = connection.run(kMembers, {account});
  if (!rows) return std::unexpected(rows.error());
  std::vector<Member> members;
  for (std::size_t row = 0; row < rows->size(); ++row) members.push_back(member_at(*rows, row));
  return members;
}

std::span<const Statement> account_statements() {
  return kAccountStatements;
}

}  // namespace gitops::control_plane_server
