#include "control-plane/accounts/page_tokens.hpp"

#include <array>
#include <utility>

#include "common/core/crypto.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Param;
using store::Statement;

constexpr std::string_view kPrefix = "page_";

constexpr Statement kRuntimeOfPage{
    .name = "accounts.runtime_of_page",
    .sql = "SELECT name FROM runtime WHERE account = $1 AND name = $2"};
constexpr Statement kAddPageToken{
    .name = "accounts.add_page_token",
    .sql =
        "INSERT INTO page_token (account, hash, session, runtime, expires_at) "
        "VALUES ($1, $2, $3, $4, $5)"};
constexpr Statement kFindPageToken{
    .name = "accounts.find_page_token",
    .sql = "SELECT account, session, runtime, expires_at FROM page_token WHERE hash = $1"};

constexpr std::array kPageTokenStatements{kRuntimeOfPage, kAddPageToken, kFindPageToken};

Result<bool> has_runtime(Connection& connection, std::int64_t account, std::string_view runtime) {
  const auto rows = connection.run(kRuntimeOfPage, {account, runtime});
  if (!rows) return std::unexpected(rows.error());
  return !rows->empty();
}

}  // namespace

bool is_page_token_text(std::string_view text) {
  return text.starts_with(kPrefix) && is_token_text(text.substr(kPrefix.size()));
}

Result<Secret> create_page_token(Connection& connection, std::int64_t account,
                                 std::string_view session, std::string_view runtime, Micros now) {
  const auto exists = has_runtime(connection, account, runtime);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) {
    return fail(ErrorCode::not_found, "runtime " + std::string(runtime) + " does not exist");
  }
  Secret token(std::string(kPrefix) + std::string(token_text(random_bytes(kTokenBytes)).reveal()));
  const auto added =
      connection.run(kAddPageToken, {account, Param::bytes(session_hash(token)),
                                     Param::bytes(session), runtime, now + kPageTokenLife});
  if (!added) return std::unexpected(added.error());
  return token;
}

Result<std::optional<PageToken>> find_page_token(Connection& connection, const Secret& token) {
  const auto rows = connection.run(kFindPageToken, {Param::bytes(session_hash(token))});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::optional<PageToken>();
  PageToken found{.account = rows->number(0, 0),
                  .session = rows->string(0, 1),
                  .runtime = rows->string(0, 2),
                  .expires_at = rows->number(0, 3)};
  const auto exists = has_runtime(connection, found.account, found.runtime);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) return std::optional<PageToken>();
  return std::optional(std::move(found));
}

std::span<const Statement> page_token_statements() {
  return kPageTokenStatements;
}

}  // namespace gitops::control_plane_server
