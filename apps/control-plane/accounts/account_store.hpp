#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/accounts/identity.hpp"
#include "control-plane/projection/event_text.hpp"
#include "control-plane/projection/object.hpp"

// Accounts, users and memberships in the database. Every function blocks and runs through store::Database; those that
// change several rows are called within one transaction (Database::write). Errors besides those of Connection: not_found,
// conflict (a name is taken), invalid_argument (a malformed name).
namespace gitops::control_plane_server {

// A person. Users belong to the installation; memberships join them to accounts.
struct User {
  std::string id;
  std::string name;
  std::string email;
  std::string password;  // PHC string of argon2id; empty: no login by password
  bool is_system_admin = false;
  bool is_disabled = false;
  std::int64_t active_account = 0;  // number of the account that a login opens
  Micros created_at = 0;
  Micros seen_at = 0;  // last login
};

// A user as a member of one account.
struct Member {
  User user;  // without the password
  bool is_admin = false;
};

struct NewUser {
  std::string name;
  std::string email = {};
  std::string password = {};  // PHC string, or empty
  bool is_system_admin = false;
  bool is_admin = false;  // of the account
  std::string id = {};    // empty: a new one
};

struct GitSettings {
  std::string provider;  // "GITHUB"
  std::string api_url;
  std::string shared_config_repo;
};

// Returns why a name of an account or a user is refused, or an empty text. A name has 1 to 128 bytes of UTF-8, without
// control characters and without blanks at its ends.
std::string name_mistake(std::string_view name);

// Returns why a name of a user is refused, or an empty text: besides name_mistake(), a name that the audit log uses for
// other callers.
std::string user_name_mistake(std::string_view name);

// Returns the number of the account with this id; an empty id is the caller's account. not_found for any other account,
// whether it exists or not.
Result<std::int64_t> account_number(const Caller& caller, std::string_view account_id);

// Creates an account with its two built-in teams, users and admins.
Result<Account> create_account(store::Connection& connection, const std::string& name, Micros now);
// Returns an account with the ids of its administrators. not_found when the number is unknown.
Result<Account> account_of_number(store::Connection& connection, std::int64_t number);
Result<Account> account_of_id(store::Connection& connection, std::string_view id);
Result<Account> account_of_name(store::Connection& connection, std::string_view name);
// Returns all accounts, sorted by name.
Result<std::vector<Account>> list_accounts(store::Connection& connection);
// Returns the accounts that a user is a member of, sorted by name.
Result<std::vector<Account>> accounts_of_user(store::Connection& connection,
                                              std::string_view user_id);

Result<void> set_git_settings(store::Connection& connection, std::int64_t account,
                              const GitSettings& settings);
// Sets the shared configuration repository of an account that has none, and returns the stored repository.
Result<std::string> suggest_shared_config_repo(store::Connection& connection, std::int64_t account,
                                               std::string_view repository);

// Creates a user as a member of this account.
Result<User> create_user(store::Connection& connection, std::int64_t account, const NewUser& user,
                         Micros now);
Result<User> user_of_id(store::Connection& connection, std::string_view id);
Result<User> user_of_name(store::Connection& connection, std::string_view name);
// Returns all users of the installation without their passwords, sorted by name.
Result<std::vector<User>> list_users(store::Connection& connection);
Result<bool> has_users(store::Connection& connection);
// Stores the PHC string of a new password. Sessions stay valid until end_sessions_of() ends them.
Result<void> set_password(store::Connection& connection, std::string_view user_id,
                          std::string_view password);
// Stores another PHC string of the same password, unless the password was changed in the meantime.
Result<void> replace_password_hash(store::Connection& connection, std::string_view user_id,
                                   std::string_view before, std::string_view after);
Result<void> set_disabled(store::Connection& connection, std::string_view user_id,
                          bool is_disabled);
Result<void> set_user_details(store::Connection& connection, std::string_view user_id,
                              const std::string& name, std::string_view email);
// Removes a user from the installation: its memberships, keys and sessions. Errors besides the usual ones: conflict, as
// in keep_administrators().
Result<void> remove_user(store::Connection& connection, std::string_view user_id);
Result<void> set_active_account(store::Connection& connection, std::string_view user_id,
                                std::int64_t account);
Result<void> set_user_seen(store::Connection& connection, std::string_view user_id, Micros now);

// Adds a member, or changes whether it is an administrator. Its membership in the built-in teams is updated.
Result<void> put_member(store::Connection& connection, std::int64_t account,
                        std::string_view user_id, bool is_admin);
// Removes a member from the account and its teams, and revokes its keys there.
Result<void> remove_member(store::Connection& connection, std::int64_t account,
                           std::string_view user_id);
// Returns a user whom the caller may manage: any user for an administrator of the installation, else a member of the
// caller's account who is in no other one. not_found or forbidden otherwise.
Result<User> managed_user(store::Connection& connection, const Caller& caller,
                          std::string_view user_id);
// Locks the account, and returns conflict when this user is its last administrator who is not disabled. Called before
// the user is removed, disabled or demoted.
Result<void> keep_administrator(store::Connection& connection, std::int64_t account,
                                std::string_view user_id);
// The same in every account of the user, and for the last administrator of the installation.
Result<void> keep_administrators(store::Connection& connection, std::string_view user_id);
// Returns the member; nothing when the user is not a member of the account.
Result<std::optional<Member>> find_member(store::Connection& connection, std::int64_t account,
                                          std::string_view user_id);
// Returns the members of the account, sorted by name.
Result<std::vector<Member>> list_members(store::Connection& connection, std::int64_t account);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> account_statements();

}  // namespace gitops::control_plane_server
