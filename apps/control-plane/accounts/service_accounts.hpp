#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// Service accounts in the database: callers for programs, with API keys and without a password. They are in a table of
// their own, so that no login finds them and their names are free in every account. Errors and threads as in
// account_store.hpp.
namespace gitops::control_plane_server {

inline constexpr std::size_t kMaxServiceAccounts = 1'000;  // of an account

struct ServiceAccount {
  std::string id;
  std::string name;
  bool is_admin = false;  // of the account
  bool is_disabled = false;
  Micros created_at = 0;
  std::vector<std::string> teams;  // ids
};

// The values of a service account that administrators choose.
struct ServiceAccountRequest {
  std::string name;
  bool is_admin = false;
  std::vector<std::string> teams = {};  // ids
};

// Creates a service account. Errors besides the usual ones: not_found for a team that the account does not have.
Result<ServiceAccount> create_service_account(store::Connection& connection, std::int64_t account,
                                              const ServiceAccountRequest& request, Micros now);
// Replaces the values of a service account.
Result<ServiceAccount> update_service_account(store::Connection& connection, std::int64_t account,
                                              std::string_view id,
                                              const ServiceAccountRequest& request);
// Keys of a disabled service account are invalid until it is enabled again.
Result<void> set_service_account_disabled(store::Connection& connection, std::int64_t account,
                                          std::string_view id, bool is_disabled);
// Removes a service account, its keys and its places in teams.
Result<void> remove_service_account(store::Connection& connection, std::int64_t account,
                                    std::string_view id);
Result<ServiceAccount> service_account_of_id(store::Connection& connection, std::int64_t account,
                                             std::string_view id);
// Returns the service accounts of an account, sorted by name.
Result<std::vector<ServiceAccount>> list_service_accounts(store::Connection& connection,
                                                          std::int64_t account);

std::span<const store::Statement> service_account_statements();

}  // namespace gitops::control_plane_server
