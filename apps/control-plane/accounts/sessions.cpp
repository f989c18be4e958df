#include "control-plane/accounts/sessions.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Param;
using store::Rows;
using store::Statement;

constexpr std::size_t kMaxSentToken = 8 * 1024;
constexpr std::size_t kSessionIdBytes = 12;  // of the hash
constexpr std::string_view kAuthorization = "Authorization";
constexpr std::string_view kAccessToken = "x-access-token";
constexpr std::string_view kCookie = "Cookie";
constexpr std::string_view kBearer = "Bearer";

constexpr Statement kAddSession{
    .name = "accounts.add_session",
    .sql =
        "INSERT INTO session (hash, user_id, created_at, seen_at, expires_at, provider) "
        "VALUES ($1, $2, $3, $3, $4, $5)"};
constexpr Statement kFindSession{
    .name = "accounts.find_session",
    .sql =
        "SELECT hash, user_id, created_at, seen_at, expires_at, provider "
        "FROM session WHERE hash = $1"};
constexpr Statement kSetSessionSeen{
    .name = "accounts.set_session_seen",
    .sql = "UPDATE session SET seen_at = $2 WHERE hash = $1 AND seen_at < $2"};
constexpr Statement kEndSession{.name = "accounts.end_session",
                                .sql = "DELETE FROM session WHERE hash = $1"};
constexpr Statement kTakeSession{
    .name = "accounts.take_session",
    .sql =
        "DELETE FROM session WHERE hash = $1 RETURNING hash, user_id, created_at, seen_at, "
        "expires_at, provider"};
constexpr Statement kContinueSession{
    .name = "accounts.continue_session",
    .sql =
        "INSERT INTO session (hash, user_id, created_at, seen_at, expires_at, provider) "
        "VALUES ($1, $2, $3, $4, $5, $6)"};
constexpr Statement kEndSessionsOf{.name = "accounts.end_sessions_of",
                                   .sql = "DELETE FROM session WHERE user_id = $1"};

constexpr std::array kSessionStatements{kAddSession,   kFindSession, kSetSessionSeen,
                                        kEndSession,   kTakeSession, kContinueSession,
                                        kEndSessionsOf};

Result<void> no_rows(const Result<Rows>& rows) {
  if (!rows) return std::unexpected(rows.error());
  return {};
}

// Returns the session of the first row, if there is one.
std::optional<Session> session_of(const Rows& rows) {
  if (rows.empty()) return std::nullopt;
  return Session{.hash = rows.string(0, 0),
                 .user_id = rows.string(0, 1),
                 .created_at = rows.number(0, 2),
                 .seen_at = rows.number(0, 3),
                 .expires_at = rows.number(0, 4),
                 .provider = rows.string(0, 5)};
}

std::size_t count_of(const http::Headers& headers, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      headers, [&](const auto& field) { return http::equal_ignoring_case(field.first, name); }));
}

SentToken malformed_token() {
  return {.kind = SentToken::Kind::malformed, .token = {}};
}

SentToken token_in(SentToken::Kind kind, std::string_view text) {
  const bool is_plain =
      std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (text.empty() || text.size() > kMaxSentToken || !is_plain) return malformed_token();
  return {.kind = kind, .token = Secret(std::string(text))};
}

std::string_view without_scheme(std::string_view value) {
  const auto scheme = value.substr(0, value.find(' '));
  if (!http::equal_ignoring_case(scheme, kBearer)) return value;
  return trimmed(value.substr(scheme.size()));
}

std::string cookie_text(CookieForm form, std::string_view value, std::int64_t max_age) {
  return std::string(cookie_name(form)) + "=" + std::string(value) +
         "; Path=/; Max-Age=" + std::to_string(max_age) + "; HttpOnly; SameSite=Lax" +
         (form == CookieForm::secure ? "; Secure" : "");
}

}  // namespace

std::string_view cookie_name(CookieForm form) {
  return form == CookieForm::secure ? "__Host-session" : "session";
}

std::string session_cookie(CookieForm form, const Secret& token) {
  return cookie_text(form, token.reveal(), kSessionMax / 1'000'000);
}

std::string ended_session_cookie(CookieForm form) {
  return cookie_text(form, "", 0);
}

std::optional<std::string_view> cookie_value(std::string_view header, std::string_view name) {
  std::optional<std::string_view> found;
  while (!header.empty()) {
    const auto end = std::min(header.find(';'), header.size());
    const auto pair = trimmed(header.substr(0, end));
    header.remove_prefix(std::min(end + 1, header.size()));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos || trimmed(pair.substr(0, equals)) != name) continue;
    auto value = trimmed(pair.substr(equals + 1));
    if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"')) {
      value = value.substr(1, value.size() - 2);
    }
    if (found && *found != value) return {};
    found = value;
  }
  return found;
}

bool is_alive(const Session& session, Micros now) {
  return now < session.expires_at && now < session.seen_at + kSessionIdle;
}

std::string session_id(std::string_view hash) {
  return "session-" + hex_encode(hash.substr(0, kSessionIdBytes));
}

std::string session_hash(const Secret& token) {
  return std::string(bytes_of(sha256(token.reveal())));
}

bool is_from_other_site(const http::Headers& headers, const std::vector<std::string>& own_origins) {
  const auto origin = headers.find("Origin");
  if (origin && std::ranges::find(own_origins, *origin) != own_origins.end()) return false;
  if (const auto site = headers.find("Sec-Fetch-Site")) {
    return *site != "same-origin" && *site != "none";
  }
  if (!origin) return false;
  const auto scheme = origin->find("://");
  const auto host = headers.find("Host");
  return scheme == std::string_view::npos || !host ||
         !http::equal_ignoring_case(origin->substr(scheme + 3), *host);
}

SentToken sent_token(const http::Headers& headers, CookieForm form) {
  for (const auto name : {kAuthorization, kAccessToken}) {
    const auto given = count_of(headers, name);
    if (given > 1) return malformed_token();
    if (given == 0) continue;
    const auto value = trimmed(*headers.find(name));
    return token_in(SentToken::Kind::header,
                    name == kAuthorization ? without_scheme(value) : value);
  }
  const auto given = count_of(headers, kCookie);
  if (given > 1) return malformed_token();
  const auto cookie = headers.find(kCookie);
  if (!cookie) return {};
  const auto value = cookie_value(*cookie, cookie_name(form));
  return value ? token_in(SentToken::Kind::cookie, *value) : SentToken{};
}

Result<Secret> create_session(Connection& connection, std::string_view user_id, Micros now,
                              std::string_view provider) {
  auto token = token_text(random_bytes(kTokenBytes));
  const auto hash = session_hash(token);
  const auto added =
      connection.run(kAddSession, {Param::bytes(hash), user_id, now, now + kSessionMax, provider});
  if (!added) return std::unexpected(added.error());
  return token;
}

Result<std::optional<Session>> find_session(Connection& connection, std::string_view hash) {
  const auto rows = connection.run(kFindSession, {Param::bytes(hash)});
  if (!rows) return std::unexpected(rows.error());
  return session_of(*rows);
}

Result<std::optional<Secret>> renew_session(Connection& connection, std::string_view hash,
                                            Micros now) {
  const auto rows = connection.run(kTakeSession, {Param::bytes(hash)});
  if (!rows) return std::unexpected(rows.error());
  const auto before = session_of(*rows);
  if (!before || !is_alive(*before, now)) return std::optional<Secret>();
  auto token = token_text(random_bytes(kTokenBytes));
  const auto new_hash = session_hash(token);
  const auto added =
      connection.run(kContinueSession, {Param::bytes(new_hash), before->user_id, before->created_at,
                                        now, before->expires_at, before->provider});
  if (!added) return std::unexpected(added.error());
  return std::optional(std::move(token));
}

Result<void> set_session_seen(Connection& connection, std::string_view hash, Micros now) {
  return no_rows(connection.run(kSetSessionSeen, {Param::bytes(hash), now}));
}

Result<void> end_session(Connection& connection, std::string_view hash) {
  return no_rows(connection.run(kEndSession, {Param::bytes(hash)}));
}

Result<void> end_sessions_of(Connection& connection, std::string_view user_id) {
  return no_rows(connection.run(kEndSessionsOf, {user_id}));
}

std::span<const Statement> session_statements() {
  return kSessionStatements;
}

}  // namespace gitops::control_plane_server
