#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/accounts/account_store.hpp"

// The users of identity providers in the database. Errors and threads as in account_store.hpp.
namespace gitops::control_plane_server {

// A user as a provider names it: the subject is unique at the issuer and never becomes another user's.
struct ProviderIdentity {
  std::string issuer;
  std::string subject;
};

// Returns the user of an identity; nothing when it is not known.
Result<std::optional<User>> user_of_identity(store::Connection& connection,
                                             const ProviderIdentity& identity);
// Records an identity of a user. conflict: it belongs to a user already.
Result<void> add_identity(store::Connection& connection, const ProviderIdentity& identity,
                          std::string_view user_id, Micros now);
// Removes the identities of a user who is removed. The provider's next login of this subject is that of a new user.
Result<void> remove_identities(store::Connection& connection, std::string_view user_id);
// Returns whether a user belongs to a provider.
Result<bool> has_identity(store::Connection& connection, std::string_view user_id);
// Returns whether a user may log in by password. A user of a provider may not: a user that the provider blocks has to be
// blocked here, too. An administrator of the installation may, to get in while the provider is down.
Result<bool> may_use_password(store::Connection& connection, const User& user);
// Returns the member of an account with this mail address. Nothing when there is none or more than one.
Result<std::optional<User>> member_of_email(store::Connection& connection, std::int64_t account,
                                            std::string_view email);

std::span<const store::Statement> provider_identity_statements();

}  // namespace gitops::control_plane_server
