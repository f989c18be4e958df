#include "control-plane/accounts/provider_identities.hpp"

#include <array>
#include <utility>

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

constexpr Statement kUserOfIdentity{
    .name = "accounts.user_of_identity",
    .sql = "SELECT user_id FROM identity WHERE issuer = $1 AND subject = $2"};
constexpr Statement kAddIdentity{
    .name = "accounts.add_identity",
    .sql = "INSERT INTO identity (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4)"};
constexpr Statement kHasIdentity{.name = "accounts.has_identity",
                                 .sql = "SELECT issuer FROM identity WHERE user_id = $1 LIMIT 1"};
constexpr Statement kMemberOfEmail{.name = "accounts.member_of_email",
                                   .sql =
                                       "SELECT u.id FROM member m JOIN users u ON u.id = m.user_id "
                                       "WHERE m.account = $1 AND u.email = $2 LIMIT 2"};

constexpr Statement kRemoveIdentities{.name = "accounts.remove_identities",
                                      .sql = "DELETE FROM identity WHERE user_id = $1"};

constexpr std::array kIdentityStatements{kUserOfIdentity, kAddIdentity, kHasIdentity,
                                         kMemberOfEmail, kRemoveIdentities};

Result<std::optional<User>> known_user(Connection& connection, std::string_view id) {
  auto user = user_of_id(connection, id);
  if (!user) return std::unexpected(std::move(user.error()));
  return std::optional(std::move(*user));
}

}  // namespace

Result<std::optional<User>> user_of_identity(Connection& connection,
                                             const ProviderIdentity& identity) {
  const auto rows = connection.run(kUserOfIdentity, {identity.issuer, identity.subject});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::optional<User>();
  return known_user(connection, rows->text(0, 0));
}

Result<void> add_identity(Connection& connection, const ProviderIdentity& identity,
                          std::string_view user_id, Micros now) {
  const auto added =
      connection.run(kAddIdentity, {identity.issuer, identity.subject, user_id, now});
  if (!added) return std::unexpected(added.error());
  return {};
}

Result<void> remove_identities(Connection& connection, std::string_view user_id) {
  return connection.execute(kRemoveIdentities, {user_id});
}

Result<bool> has_identity(Connection& connection, std::string_view user_id) {
  const auto rows = connection.run(kHasIdentity, {user_id});
  if (!rows) return std::unexpected(rows.error());
  return !rows->empty();
}

Result<bool> may_use_password(Connection& connection, const User& user) {
  if (user.is_system_admin) return true;
  const auto has = has_identity(connection, user.id);
  if (!has) return has;
  return !*has;
}

Result<std::optional<User>> member_of_email(Connection& connection, std::int64_t account,
                                            std::string_view email) {
  const auto rows = connection.run(kMemberOfEmail, {account, email});
  if (!rows) return std::unexpected(rows.error());
  if (rows->size() != 1) return std::optional<User>();
  return known_user(connection, rows->text(0, 0));
}

std::span<const Statement> provider_identity_statements() {
  return kIdentityStatements;
}

}  // namespace gitops::control_plane_server
