#include "control-plane/accounts/invitations.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "common/http/message.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Param;
using store::Rows;
using store::Statement;

constexpr std::size_t kMaxEmail = 254;  // RFC 5321

constexpr std::string_view kColumns =
    "account, user_id, name, email, is_admin, created_at, expires_at";
constexpr std::string_view kSelect = "SELECT ";
constexpr std::string_view kFrom = " FROM invitation";
constexpr std::string_view kOfAccount = " WHERE account = $1";
constexpr std::string_view kAndUser = " AND user_id = $2";
constexpr std::string_view kByEmail = " ORDER BY email, user_id";
constexpr std::string_view kOfToken = " WHERE hash = $1 AND expires_at > $2";
constexpr std::string_view kDelete = "DELETE FROM invitation";
constexpr std::string_view kReturning = " RETURNING ";

constexpr Statement kPut{
    .name = "accounts.put_invitation",
    .sql =
        "INSERT INTO invitation (account, user_id, hash, name, email, is_admin, created_at, "
        "expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (account, user_id) DO "
        "UPDATE SET hash = excluded.hash, name = excluded.name, email = excluded.email, "
        "is_admin = excluded.is_admin, created_at = excluded.created_at, "
        "expires_at = excluded.expires_at"};
constexpr Statement kAll{.name = "accounts.invitations",
                         .sql = store::joined<kSelect, kColumns, kFrom, kOfAccount, kByEmail>};
constexpr Statement kOfUser{.name = "accounts.invitation_of_user",
                            .sql = store::joined<kSelect, kColumns, kFrom, kOfAccount, kAndUser>};
constexpr Statement kFind{.name = "accounts.find_invitation",
                          .sql = store::joined<kSelect, kColumns, kFrom, kOfToken>};
constexpr Statement kTake{.name = "accounts.take_invitation",
                          .sql = store::joined<kDelete, kOfToken, kReturning, kColumns>};
constexpr Statement kSetAdmin{
    .name = "accounts.set_invitation_admin",
    .sql = "UPDATE invitation SET is_admin = $3 WHERE account = $1 AND user_id = $2"};
constexpr Statement kRevoke{.name = "accounts.revoke_invitation",
                            .sql = store::joined<kDelete, kOfAccount, kAndUser>};

constexpr std::array kStatements{kPut, kAll, kOfUser, kFind, kTake, kSetAdmin, kRevoke};

Invitation invitation_at(const Rows& rows, std::size_t row) {
  return {.account = rows.number(row, 0),
          .user_id = rows.string(row, 1),
          .name = rows.string(row, 2),
          .email = rows.string(row, 3),
          .is_admin = rows.number(row, 4) != 0,
          .created_at = rows.number(row, 5),
          .expires_at = rows.number(row, 6)};
}

std::string hash_of(const Secret& token) {
  return std::string(bytes_of(sha256(token.reveal())));
}

Result<Invitation> one_of(const Result<Rows>& rows) {
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) {
    return fail(ErrorCode::not_found,
                "The invitation is not valid: it is unknown, used, expired or withdrawn.");
  }
  return invitation_at(*rows, 0);
}

Result<void> changed_one(const Result<Rows>& rows, std::string_view user_id) {
  if (!rows) return std::unexpected(rows.error());
  if (rows->changed() == 0) {
    return fail(ErrorCode::not_found, "there is no user " + std::string(user_id));
  }
  return {};
}

std::string request_mistake(const InvitationRequest& request) {
  if (auto mistake = email_mistake(request.email); !mistake.empty()) return mistake;
  return request.name.empty() ? std::string() : user_name_mistake(request.name);
}

Result<IssuedInvitation> issue(Connection& connection, std::int64_t account, std::string user_id,
                               const InvitationRequest& request, Micros now) {
  IssuedInvitation issued{.invitation = {.account = account,
                                         .user_id = std::move(user_id),
                                         .name = request.name,
                                         .email = request.email,
                                         .is_admin = request.is_admin,
                                         .created_at = now,
                                         .expires_at = now + kInvitationLife},
                          .token = token_text(random_bytes(kTokenBytes))};
  const auto& row = issued.invitation;
  const auto hash = hash_of(issued.token);
  const auto put = connection.run(kPut, {account, row.user_id, Param::bytes(hash), row.name,
                                         row.email, row.is_admin, row.created_at, row.expires_at});
  if (!put) return std::unexpected(put.error());
  return issued;
}

}  // namespace

std::string email_mistake(std::string_view email) {
  const auto at = email.find('@');
  const bool is_valid =
      email.size() <= kMaxEmail && is_utf8(email) && at != std::string_view::npos && at > 0 &&
      at + 1 < email.size() && email.find('@', at + 1) == std::string_view::npos &&
      std::ranges::none_of(email, [](unsigned char c) {
        return c <= 0x20 || c == 0x7f || c == '<' || c == '>' || c == ',' || c == ';';
      });
  return is_valid ? std::string() : "a mail address has the form name@domain";
}

std::string invitation_link(std::string_view public_url, const Secret& token) {
  while (public_url.ends_with('/')) public_url.remove_suffix(1);
  return std::string(public_url) + "/invitation?token=" + std::string(token.reveal());
}

Result<IssuedInvitation> invite(Connection& connection, std::int64_t account,
                                const InvitationRequest& request, Micros now) {
  if (auto mistake = request_mistake(request); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto existing = list_invitations(connection, account);
  if (!existing) return std::unexpected(existing.error());
  for (const auto& older : *existing) {
    if (http::equal_ignoring_case(older.email, request.email)) {
      return issue(connection, account, older.user_id, request, now);
    }
  }
  if (existing->size() >= kMaxInvitations) {
    return fail(ErrorCode::invalid_argument,
                "the account has 1,000 pending users: remove some of them first");
  }
  return issue(connection, account, new_id(), request, now);
}

Result<IssuedInvitation> change_invitation(Connection& connection, std::int64_t account,
                                           std::string_view user_id,
                                           const InvitationRequest& request, Micros now) {
  if (auto mistake = request_mistake(request); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto existing = list_invitations(connection, account);
  if (!existing) return std::unexpected(existing.error());
  for (const auto& other : *existing) {
    if (other.user_id != user_id && http::equal_ignoring_case(other.email, request.email)) {
      return fail(ErrorCode::conflict, "another pending user has this mail address");
    }
  }
  return issue(connection, account, std::string(user_id), request, now);
}

Result<std::vector<Invitation>> list_invitations(Connection& connection, std::int64_t account) {
  const auto rows = connection.run(kAll, {account});
  if (!rows) return std::unexpected(rows.error());
  std::vector<Invitation> found;
  for (std::size_t row = 0; row < rows->size(); ++row) found.push_back(invitation_at(*rows, row));
  return found;
}

Result<std::optional<Invitation>> invitation_of_user(Connection& connection, std::int64_t account,
                                                     std::string_view user_id) {
  const auto rows = connection.run(kOfUser, {account, user_id});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::optional<Invitation>();
  return std::optional(invitation_at(*rows, 0));
}

Result<void> set_invitation_admin(Connection& connection, std::int64_t account,
                                  std::string_view user_id, bool is_admin) {
  return changed_one(connection.run(kSetAdmin, {account, user_id, is_admin}), user_id);
}

Result<void> revoke_invitation(Connection& connection, std::int64_t account,
                               std::string_view user_id) {
  return changed_one(connection.run(kRevoke, {account, user_id}), user_id);
}

Result<Invitation> find_invitation(Connection& connection, const Secret& token, Micros now) {
  const auto hash = hash_of(token);
  return one_of(connection.run(kFind, {Param::bytes(hash), now}));
}

Result<User> accept_as_new_user(Connection& connection, const Secret& token,
                                const std::string& name, const std::string& password_hash,
                                Micros now) {
  const auto hash = hash_of(token);
  const auto taken = one_of(connection.run(kTake, {Param::bytes(hash), now}));
  if (!taken) return std::unexpected(taken.error());
  return create_user(connection, taken->account,
                     {.name = name.empty() ? taken->name : name,
                      .email = taken->email,
                      .password = password_hash,
                      .is_admin = taken->is_admin,
                      .id = taken->user_id},
                     now);
}

Result<Account> accept_as_user(Connection& connection, const Secret& token,
                               std::string_view user_id, Micros now) {
  const auto hash = hash_of(token);
  const auto taken = one_of(connection.run(kTake, {Param::bytes(hash), now}));
  if (!taken) return std::unexpected(taken.error());
  const auto member = find_member(connection, taken->account, user_id);
  if (!member) return std::unexpected(member.error());
  if (*member) return fail(ErrorCode::conflict, "you are a member of this account already");
  if (auto put = put_member(connection, taken->account, user_id, taken->is_admin); !put) {
    return std::unexpected(std::move(put.error()));
  }
  return account_of_number(connection, taken->account);
}

std::span<const Statement> invitation_statements() {
  return kStatements;
}

}  // namespace gitops::control_plane_server
