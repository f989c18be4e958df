#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/projection/object.hpp"

// Invitations to an account in the database. An invitation is a pending user. Its token lets its holder join the account,
// as a new user or as the user of the present session. The token is 256 random bits, is stored as SHA-256, and works once. Errors
// and threads as in account_store.hpp.
namespace gitops::control_plane_server {

inline constexpr Micros kInvitationLife = 7LL * 24 * 3600 * 1'000'000;
inline constexpr std::size_t kMaxInvitations = 1'000;  // of an account

struct Invitation {
  std::int64_t account = 0;
  std::string user_id;  // of the new user
  std::string name;     // proposed name; may be empty
  std::string email;
  bool is_admin = false;  // of the account
  Micros created_at = 0;
  Micros expires_at = 0;
};

// Returns the name that lists show for a pending user.
inline const std::string& pending_user_name(const Invitation& invitation) {
  return invitation.name.empty() ? invitation.email : invitation.name;
}

struct IssuedInvitation {
  Invitation invitation;
  Secret token;  // shown once
};

struct InvitationRequest {
  std::string email;
  std::string name = {};
  bool is_admin = false;
};

// Returns why a mail address is refused, or an empty text. Nothing is sent to it.
std::string email_mistake(std::string_view email);
// Returns the link that a person opens: "<public url>/invitation?token=…". Without a public URL it is a path.
std::string invitation_link(std::string_view public_url, const Secret& token);

// Invites a mail address. An invitation of the same address in this account is replaced: it keeps the id of its user, and
// its older token is void.
Result<IssuedInvitation> invite(store::Connection& connection, std::int64_t account,
                                const InvitationRequest& request, Micros now);
// Changes the name and the address of a pending user. The older token is void, because its link went to the older
// address.
Result<IssuedInvitation> change_invitation(store::Connection& connection, std::int64_t account,
                                           std::string_view user_id,
                                           const InvitationRequest& request, Micros now);
// Returns the invitations of an account, expired ones too, in the order of their addresses.
Result<std::vector<Invitation>> list_invitations(store::Connection& connection,
                                                 std::int64_t account);
Result<std::optional<Invitation>> invitation_of_user(store::Connection& connection,
                                                     std::int64_t account,
                                                     std::string_view user_id);
Result<void> set_invitation_admin(store::Connection& connection, std::int64_t account,
                                  std::string_view user_id, bool is_admin);
Result<void> revoke_invitation(store::Connection& connection, std::int64_t account,
                               std::string_view user_id);

// Returns the invitation of a token. not_found with one and the same message for a token that is unknown, used, expired
// or revoked; all of them take the same statement.
Result<Invitation> find_invitation(store::Connection& connection, const Secret& token, Micros now);
// Accepts an invitation as a new user, and returns the user. Errors besides those of find_invitation() and
// create_user().
Result<User> accept_as_new_user(store::Connection& connection, const Secret& token,
                                const std::string& name, const std::string& password_hash,
                                Micros now);
// Accepts an invitation as a user that exists, and returns the account that the user joined. conflict: it is a member.
Result<Account> accept_as_user(store::Connection& connection, const Secret& token,
                               std::string_view user_id, Micros now);

std::span<const store::Statement> invitation_statements();

}  // namespace gitops::control_plane_server
