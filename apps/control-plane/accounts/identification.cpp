#include "control-plane/accounts/identification.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/page_tokens.hpp"
#include "control-plane/accounts/scopes.hpp"
#include "control-plane/accounts/service_accounts.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

constexpr Statement kRuntimeSeen{
    .name = "accounts.runtime_seen",
    .sql = "SELECT seen_at FROM runtime WHERE account = $1 AND name = $2"};
constexpr Statement kSetRuntimeSeen{
    .name = "accounts.set_runtime_seen",
    .sql = "UPDATE runtime SET seen_at = $3 WHERE account = $1 AND name = $2 AND seen_at < $3"};

constexpr std::array kIdentificationStatements{kRuntimeSeen, kSetRuntimeSeen};

// Returns the user as a member of an account. Null: the user is not a member, or is disabled.
Result<std::shared_ptr<Caller>> caller_of_user(Connection& connection, std::int64_t account,
                                               const std::string& user_id) {
  const auto member = find_member(connection, account, user_id);
  if (!member) return std::unexpected(member.error());
  if (!*member || (*member)->user.is_disabled) return std::shared_ptr<Caller>();
  auto found = account_of_number(connection, account);
  if (!found) return std::unexpected(std::move(found.error()));
  auto caller = std::make_shared<Caller>();
  caller->account = std::make_shared<const Account>(std::move(*found));
  caller->user_id = (*member)->user.id;
  caller->name = (*member)->user.name;
  caller->email = (*member)->user.email;
  caller->is_admin = (*member)->is_admin;
  caller->is_system_admin = (*member)->user.is_system_admin;
  return caller;
}

// Null: the service account is disabled or does not exist any more.
Result<std::shared_ptr<Caller>> caller_of_service_account(Connection& connection,
                                                          const ApiKey& key) {
  const auto found = service_account_of_id(connection, key.account, key.user_id);
  if (!found && found.error().code == ErrorCode::not_found) return std::shared_ptr<Caller>();
  if (!found) return std::unexpected(found.error());
  if (found->is_disabled) return std::shared_ptr<Caller>();
  auto account = account_of_number(connection, key.account);
  if (!account) return std::unexpected(std::move(account.error()));
  auto caller = std::make_shared<Caller>();
  caller->account = std::make_shared<const Account>(std::move(*account));
  caller->user_id = found->id;
  caller->name = found->name;
  caller->is_admin = found->is_admin;
  caller->is_service_account = true;
  return caller;
}

Result<std::shared_ptr<Caller>> caller_of_runtime(Connection& connection, const ApiKey& key,
                                                  DueTimes& due, Micros now) {
  const auto seen = connection.run(kRuntimeSeen, {key.account, key.runtime});
  if (!seen) return std::unexpected(seen.error());
  if (seen->empty()) return std::shared_ptr<Caller>();
  auto account = account_of_number(connection, key.account);
  if (!account) return std::unexpected(std::move(account.error()));
  if (seen->number(0, 0) + kRuntimeSeenPeriod <= now) due.runtime = key.runtime;
  auto caller = std::make_shared<Caller>();
  caller->account = std::make_shared<const Account>(std::move(*account));
  caller->runtime = key.runtime;
  return caller;
}

Result<std::shared_ptr<Caller>> caller_of_key(Connection& connection, const ApiKey& key,
                                              DueTimes& due, Micros now) {
  if (!key.runtime.empty()) return caller_of_runtime(connection, key, due, now);
  if (key.is_of_service_account) return caller_of_service_account(connection, key);
  return caller_of_user(connection, key.account, key.user_id);
}

Result<Identification> identify_key(Connection& connection, const ParsedKey& sent, Micros now) {
  const auto key = find_key(connection, sent.id);
  if (!key) return std::unexpected(key.error());
  if (!is_valid_key(*key ? &**key : nullptr, sent.secret, now)) return Identification();
  Identification found;
  found.due.account = (*key)->account;
  auto caller = caller_of_key(connection, **key, found.due, now);
  if (!caller) return std::unexpected(std::move(caller.error()));
  if (!*caller) return Identification();
  if ((*key)->used_at + kKeyUsedPeriod <= now) found.due.key_id = (*key)->id;
  (*caller)->credential_id = (*key)->id;
  (*caller)->scopes = (*key)->scopes;
  (*caller)->valid_until = (*key)->expires_at;
  found.caller = std::move(*caller);
  return found;
}

// Returns the caller in the user's active account, or in the user's first account when the user is no longer a member
// of the active one.
Result<std::shared_ptr<Caller>> caller_of_session(Connection& connection,
                                                  const std::string& user_id) {
  const auto user = user_of_id(connection, user_id);
  if (!user && user.error().code == ErrorCode::not_found) return std::shared_ptr<Caller>();
  if (!user) return std::unexpected(user.error());
  auto caller = caller_of_user(connection, user->active_account, user_id);
  if (!caller || *caller || user->is_disabled) return caller;
  const auto accounts = accounts_of_user(connection, user_id);
  if (!accounts) return std::unexpected(accounts.error());
  if (accounts->empty()) return std::shared_ptr<Caller>();
  return caller_of_user(connection, accounts->front().number, user_id);
}

Result<Identification> identify_session(Connection& connection, const Secret& token, Micros now) {
  const auto session = find_session(connection, session_hash(token));
  if (!session) return std::unexpected(session.error());
  if (!*session || !is_alive(**session, now)) return Identification();
  auto caller = caller_of_session(connection, (*session)->user_id);
  if (!caller) return std::unexpected(std::move(caller.error()));
  if (!*caller) return Identification();
  Identification found;
  if ((*session)->seen_at + kSessionSeenPeriod <= now) found.due.session_hash = (*session)->hash;
  (*caller)->credential_id = session_id((*session)->hash);
  (*caller)->valid_until = (*session)->expires_at;
  (*caller)->is_of_session = true;
  found.caller = std::move(*caller);
  return found;
}

// The session is not marked as used: a runtime can ask with the token, and must not keep a session alive.
Result<Identification> identify_page_token(Connection& connection, const Secret& sent, Micros now) {
  const auto token = find_page_token(connection, sent);
  if (!token) return std::unexpected(token.error());
  if (!*token || (*token)->expires_at <= now) return Identification();
  const auto session = find_session(connection, (*token)->session);
  if (!session) return std::unexpected(session.error());
  if (!*session || !is_alive(**session, now)) return Identification();
  auto caller = caller_of_user(connection, (*token)->account, (*session)->user_id);
  if (!caller) return std::unexpected(std::move(caller.error()));
  if (!*caller) return Identification();
  (*caller)->credential_id = session_id((*session)->hash);
  (*caller)->valid_until = std::min((*token)->expires_at, (*session)->expires_at);
  (*caller)->page_of_runtime = (*token)->runtime;
  (*caller)->scopes = {std::string(kScopeAppProxy)};
  return Identification{.caller = std::move(*caller), .due = {}};
}

}  // namespace

Result<Identification> identify(Connection& connection, const Secret& token, Micros now) {
  if (const auto key = parse_api_key(token.reveal())) return identify_key(connection, *key, now);
  if (is_token_text(token.reveal())) return identify_session(connection, token, now);
  if (is_page_token_text(token.reveal())) return identify_page_token(connection, token, now);
  return Identification();
}

Result<void> write_times(Connection& connection, const DueTimes& due, Micros now) {
  // The runtime before its token, as a deletion and a new registration lock them. Otherwise two of them could wait for
  // each other.
  if (!due.runtime.empty()) {
    const auto set = connection.run(kSetRuntimeSeen, {due.account, due.runtime, now});
    if (!set) return std::unexpected(set.error());
  }
  if (!due.key_id.empty()) {
    if (auto set = set_key_used(connection, due.account, due.key_id, now); !set) return set;
  }
  if (!due.session_hash.empty()) return set_session_seen(connection, due.session_hash, now);
  return {};
}

std::span<const Statement> identification_statements() {
  return kIdentificationStatements;
}

}  // namespace gitops::control_plane_server
