#include "control-plane/sso/login_store.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/core/encoding.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/provider_identities.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/accounts/teams.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using store::Connection;
using store::Param;
using store::Statement;

constexpr std::int64_t kMaxPending = 10'000;
constexpr std::size_t kDigestInName = 4;  // bytes

constexpr Statement kForgetExpired{.name = "sso.forget_expired",
                                   .sql = "DELETE FROM sso_login WHERE expires_at <= $1"};
constexpr Statement kCountPending{.name = "sso.count_pending",
                                  .sql = "SELECT count(*) FROM sso_login"};
constexpr Statement kAddPending{
    .name = "sso.add_pending",
    .sql =
        "INSERT INTO sso_login (state, provider, browser, return_to, expires_at) "
        "VALUES ($1, $2, $3, $4, $5)"};
constexpr Statement kTakePending{
    .name = "sso.take_pending",
    .sql =
        "DELETE FROM sso_login WHERE state = $1 AND provider = $2 AND browser = $3 "
        "RETURNING return_to, expires_at"};

constexpr std::array kLoginStatements{kForgetExpired, kCountPending, kAddPending, kTakePending};

std::unexpected<Error> refused(std::string_view subcode, std::string why) {
  return std::unexpected(
      Error{.code = ErrorCode::forbidden, .message = std::move(why), .subcode = subcode});
}

// Returns a free name for a new user. A name that is taken belongs to somebody else, whatever the provider says.
Result<std::string> free_name(Connection& connection, const ProviderSettings& provider,
                              const Claims& claims) {
  std::string wanted = claims.subject;
  for (const auto* text : {&claims.user_name, &claims.email, &claims.name}) {
    if (text->empty() || !user_name_mistake(*text).empty()) continue;
    wanted = *text;
    break;
  }
  const auto digest = login_digest(provider.issuer + '\n' + claims.subject);
  const auto mark = hex_encode(std::string_view(digest).substr(0, kDigestInName));
  for (const auto& name :
       {wanted, wanted + " (" + provider.name + ")",
        wanted + " (" + provider.name + " " + mark + ")", provider.name + " " + mark}) {
    if (!user_name_mistake(name).empty()) continue;
    const auto taken = user_of_name(connection, name);
    if (!taken && taken.error().code == ErrorCode::not_found) return name;
    if (!taken) return std::unexpected(taken.error());
  }
  return fail(ErrorCode::conflict, "there is no free name for the user");
}

// Returns the existing user of the same mail address, when the provider may speak for it. An administrator of the
// installation is nobody's whom a provider can name, and a user of a provider stays that one's.
Result<std::optional<User>> joinable_user(Connection& connection, const ProviderSettings& provider,
                                          std::int64_t account, const Claims& claims) {
  if (!provider.joins_by_email || !claims.is_email_verified) return std::optional<User>();
  auto user = member_of_email(connection, account, claims.email);
  if (!user || !*user) return user;
  if ((*user)->is_system_admin) return std::optional<User>();
  const auto has = has_identity(connection, (*user)->id);
  if (!has) return std::unexpected(has.error());
  return *has ? std::optional<User>() : std::move(*user);
}

Result<User> new_user(Connection& connection, const ProviderSettings& provider,
                      std::int64_t account, const Claims& claims, Micros now) {
  if (!provider.creates_users) {
    return refused(kUnknownUser, "the user is not known, and create-users is off");
  }
  const auto name = free_name(connection, provider, claims);
  if (!name) return std::unexpected(name.error());
  return create_user(connection, account, {.name = *name, .email = claims.email}, now);
}

// Finds the user, joins it or creates it.
Result<User> user_of(Connection& connection, const ProviderSettings& provider, std::int64_t account,
                     const Claims& claims, Micros now, SignIn& out) {
  const ProviderIdentity identity{.issuer = provider.issuer, .subject = claims.subject};
  auto known = user_of_identity(connection, identity);
  if (!known) return std::unexpected(std::move(known.error()));
  if (*known) return std::move(**known);
  auto joinable = joinable_user(connection, provider, account, claims);
  if (!joinable) return std::unexpected(std::move(joinable.error()));
  if (*joinable && (*joinable)->is_disabled) return refused(kUserDisabled, "the user is disabled");
  out.is_newly_joined = joinable->has_value();
  out.is_new_user = !out.is_newly_joined;
  auto user = *joinable ? Result<User>(std::move(**joinable))
                        : new_user(connection, provider, account, claims, now);
  if (!user) return user;
  if (auto added = add_identity(connection, identity, user->id, now); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (out.is_newly_joined) {
    // Sessions that began by password end with the password.
    if (auto ended = end_sessions_of(connection, user->id); !ended) {
      return std::unexpected(std::move(ended.error()));
    }
  }
  return user;
}

// Returns the id of each team that the mapping names; makes the missing ones.
Result<std::map<std::string, std::string>> mapped_teams(Connection& connection,
                                                        const ProviderSettings& provider,
                                                        std::int64_t account) {
  const auto teams = list_teams(connection, account);
  if (!teams) return std::unexpected(teams.error());
  std::map<std::string, std::string> ids;
  for (const auto& team : *teams) ids.emplace(team.name, team.id);
  std::map<std::string, std::string> mapped;
  for (const auto& [group, team] : provider.teams) {
    auto& id = mapped[team];
    if (!id.empty()) continue;
    if (const auto found = ids.find(team); found != ids.end()) {
      id = found->second;
      continue;
    }
    auto created = create_team(connection, account, team);
    if (!created) return std::unexpected(std::move(created.error()));
    id = std::move(*created);
  }
  return mapped;
}

Result<void> update_teams(Connection& connection, const ProviderSettings& provider,
                          std::int64_t account, const Claims& claims, SignIn& out) {
  if (provider.teams.empty()) return {};
  const auto mapped = mapped_teams(connection, provider, account);
  if (!mapped) return std::unexpected(mapped.error());
  const auto ids = team_ids_of(connection, account, out.user_id);
  if (!ids) return std::unexpected(ids.error());
  std::set<std::string> wanted;
  for (const auto& group : claims.groups) {
    if (const auto team = provider.teams.find(group); team != provider.teams.end()) {
      wanted.insert(team->second);
    }
  }
  for (const auto& [team, id] : *mapped) {
    const bool is_in = std::ranges::find(*ids, id) != ids->end();
    if (is_in == wanted.contains(team)) continue;
    auto changed = is_in ? remove_from_team(connection, account, id, out.user_id)
                         : add_to_team(connection, account, id, out.user_id);
    if (!changed) return changed;
    ++(is_in ? out.teams_left : out.teams_joined);
  }
  return {};
}

}  // namespace

Result<void> add_pending_login(Connection& connection, std::string_view state,
                               const PendingLogin& login, Micros now) {
  if (auto forgotten = connection.execute(kForgetExpired, {now}); !forgotten) return forgotten;
  const auto count = connection.run(kCountPending);
  if (!count) return std::unexpected(count.error());
  if (count->number(0, 0) >= kMaxPending) {
    return fail(ErrorCode::too_many_requests, "too many logins have begun");
  }
  const auto until = now + std::chrono::microseconds(kLoginTime).count();
  return connection.execute(kAddPending, {Param::bytes(login_digest(state)), login.provider,
                                          Param::bytes(login.browser), login.return_to, until});
}

Result<std::optional<std::string>> take_pending_login(Connection& connection,
                                                      std::string_view state,
                                                      std::string_view provider,
                                                      const Secret& browser, Micros now) {
  const auto rows = connection.run(kTakePending, {Param::bytes(login_digest(state)), provider,
                                                  Param::bytes(login_digest(browser.reveal()))});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty() || rows->number(0, 1) <= now) return std::optional<std::string>();
  return std::optional(rows->string(0, 0));
}

Result<SignIn> sign_in(Connection& connection, const ProviderSettings& provider,
                       const Claims& claims, Micros now) {
  if (claims.has_groups_elsewhere && !provider.teams.empty()) {
    return refused(kGroupsUnknown, "the token leaves out the user's groups, which are too many");
  }
  const auto account = account_of_name(connection, provider.account);
  if (!account) return std::unexpected(account.error());
  SignIn out;
  out.account = account->number;
  const auto user = user_of(connection, provider, account->number, claims, now, out);
  if (!user) return std::unexpected(user.error());
  if (user->is_disabled) return refused(kUserDisabled, "the user is disabled");
  out.user_id = user->id;
  out.user_name = user->name;
  const auto member = find_member(connection, account->number, user->id);
  if (!member) return std::unexpected(member.error());
  if (!*member) return refused(kUnknownUser, "the user was removed from the account");
  if (auto updated = update_teams(connection, provider, account->number, claims, out); !updated) {
    return std::unexpected(std::move(updated.error()));
  }
  if (out.changes_user()) {
    const Revocation revocation{.account = account->number, .subject = user->id, .runtime = {}};
    if (auto added = add_revocation(connection, revocation, now); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  if (auto seen = set_user_seen(connection, user->id, now); !seen) {
    return std::unexpected(std::move(seen.error()));
  }
  auto session = create_session(connection, user->id, now, provider.name);
  if (!session) return std::unexpected(std::move(session.error()));
  out.session = std::move(*session);
  return out;
}

std::span<const Statement> login_store_statements() {
  return kLoginStatements;
}

}  // namespace gitops::control_plane_server::sso
