#include "control-plane/accounts/login.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <prometheus/counter.h>

#include "common/net/address_list.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/provider_identities.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/sessions.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxUserName = 128;
constexpr std::chrono::seconds kLoginRetryAfter{5};

Counter& logins(Metrics& metrics, const char* result) {
  return metrics.counter("gitops_control_plane_logins_total", "Logins by name and password",
                         {{"result", result}});
}

std::unexpected<Error> wrong_login() {
  return std::unexpected(Error{.code = ErrorCode::unauthenticated,
                               .message = "The name or the password is wrong.",
                               .http_status = 401});
}

std::unexpected<Error> no_password() {
  return std::unexpected(
      Error{.code = ErrorCode::forbidden,
            .message = "You log in at an identity provider: your password is there.",
            .http_status = 403});
}

std::unexpected<Error> too_many_logins(Clock::duration wait) {
  return std::unexpected(Error{.code = ErrorCode::too_many_requests,
                               .message = "Too many attempts to log in. Try again later.",
                               .retry_after = std::chrono::ceil<std::chrono::seconds>(wait),
                               .http_status = 429});
}

std::unexpected<Error> login_unavailable(Log& log, const Error& error) {
  log.warning("a login could not be checked", {{"error", error.message}});
  return std::unexpected(Error{.code = ErrorCode::unavailable,
                               .message = "Logins cannot be checked now. Try again later.",
                               .retry_after = kLoginRetryAfter,
                               .http_status = 503});
}

}  // namespace

Login::Login(store::Database& database, Passwords& passwords, Metrics& metrics, Options options)
    : database_(database),
      passwords_(passwords),
      per_address_(options.per_address),
      per_user_(options.per_user),
      succeeded_(logins(metrics, "succeeded")),
      failed_(logins(metrics, "failed")),
      limited_(logins(metrics, "limited")) {}

Result<void> Login::take_attempt(const std::string& name, const std::string& peer) {
  const auto now = Clock::now();
  // Unknown names are limited in the same way, so that a limit does not reveal which users exist.
  const auto network = net::client_network(peer);
  const auto wait = std::max(per_address_.wait_of(network, now), per_user_.wait_of(name, now));
  if (wait > Clock::duration::zero()) {
    limited_.Increment();
    return too_many_logins(wait);
  }
  per_address_.spend(network, now);
  per_user_.spend(name, now);
  return {};
}

Task<Result<Login::Outcome>> Login::log_in(std::string name, Secret password, std::string peer,
                                           Deadline deadline) {
  if (name.size() > kMaxUserName || !name_mistake(name).empty() ||
      password.reveal().size() > kMaxPassword) {
    name.clear();
    password = Secret();
  }
  if (auto taken = take_attempt(name, peer); !taken) {
    co_return std::unexpected(std::move(taken.error()));
  }
  const auto found = co_await database_.read(
      deadline, [name](store::Connection& connection) -> Result<std::optional<User>> {
        auto user = user_of_name(connection, name);
        if (user) {
          // Such a user looks like one whose password is wrong.
          const auto may = may_use_password(connection, *user);
          if (!may) return std::unexpected(may.error());
          return *may ? std::optional(std::move(*user)) : std::nullopt;
        }
        if (user.error().code == ErrorCode::not_found) return std::optional<User>();
        return std::unexpected(std::move(user.error()));
      });
  if (!found) co_return login_unavailable(log_, found.error());
  const bool may_log_in = *found && !(*found)->is_disabled;
  const auto verdict = co_await passwords_.verify(may_log_in ? (*found)->password : std::string(),
                                                  password, deadline);
  if (!verdict && verdict.error().code == ErrorCode::too_many_requests) {
    limited_.Increment();
    co_return too_many_logins(kLoginRetryAfter);
  }
  if (!verdict) co_return login_unavailable(log_, verdict.error());
  if (!verdict->is_right || !may_log_in) {
    failed_.Increment();
    log_.info("a login was refused", {{"peer", peer}});
    co_return wrong_login();
  }
  const User& user = **found;
  std::string better;
  if (verdict->needs_rehash) {
    // The old hash stays valid when the thread that hashes passwords is busy.
    if (auto hashed = co_await passwords_.hash(password, deadline)) better = std::move(*hashed);
  }
  auto token = co_await database_.write(
      deadline,
      [id = user.id, before = user.password, better,
       now = micros_at(wall_now())](store::Connection& connection) -> Result<Secret> {
        // The password may have been changed, or the user disabled or joined to a provider, during the check.
        const auto user_now = user_of_id(connection, id);
        if (!user_now) return std::unexpected(user_now.error());
        if (user_now->is_disabled || user_now->password != before) return wrong_login();
        const auto may = may_use_password(connection, *user_now);
        if (!may) return std::unexpected(may.error());
        if (!*may) return wrong_login();
        if (!better.empty()) {
          if (auto replaced = replace_password_hash(connection, id, before, better); !replaced) {
            return std::unexpected(std::move(replaced.error()));
          }
        }
        if (auto seen = set_user_seen(connection, id, now); !seen) {
          return std::unexpected(std::move(seen.error()));
        }
        return create_session(connection, id, now);
      });
  if (!token && (token.error().code == ErrorCode::unauthenticated ||
                 token.error().code == ErrorCode::not_found)) {
    failed_.Increment();
    co_return wrong_login();
  }
  if (!token) co_return login_unavailable(log_, token.error());
  succeeded_.Increment();
  log_.info("a user logged in", {{"user", user.id}, {"peer", peer}});
  co_return Outcome{.token = std::move(*token), .user_id = user.id};
}

Task<Result<std::string>> Login::hash_new(Secret password, Deadline deadline) {
  if (auto mistake = password_mistake(password); !mistake.empty()) {
    co_return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  auto hash = co_await passwords_.hash(std::move(password), deadline);
  if (!hash && hash.error().code == ErrorCode::too_many_requests) {
    co_return too_many_logins(kLoginRetryAfter);
  }
  co_return hash;
}

Task<Result<Secret>> Login::change_password(PasswordChange change, std::string peer,
                                            Deadline deadline) {
  const auto user = co_await database_.read(
      deadline, [id = change.user_id](store::Connection& connection) -> Result<User> {
        auto found = user_of_id(connection, id);
        if (!found) return found;
        const auto may = may_use_password(connection, *found);
        if (!may) return std::unexpected(may.error());
        if (!*may) return no_password();
        return found;
      });
  if (!user && user.error().code == ErrorCode::forbidden) {
    co_return std::unexpected(user.error());
  }
  if (!user) co_return login_unavailable(log_, user.error());
  if (auto taken = take_attempt(user->name, peer); !taken) {
    co_return std::unexpected(std::move(taken.error()));
  }
  const auto verdict = co_await passwords_.verify(user->password, change.password, deadline);
  if (!verdict && verdict.error().code == ErrorCode::too_many_requests) {
    limited_.Increment();
    co_return too_many_logins(kLoginRetryAfter);
  }
  if (!verdict) co_return login_unavailable(log_, verdict.error());
  if (!verdict->is_right) {
    log_.info("a change of a password was refused", {{"user", change.user_id}, {"peer", peer}});
    co_return std::unexpected(Error{.code = ErrorCode::forbidden,
                                    .message = "The present password is wrong.",
                                    .http_status = 403});
  }
  auto hash = co_await hash_new(std::move(change.new_password), deadline);
  if (!hash) co_return std::unexpected(std::move(hash.error()));
  auto token = co_await database_.write(
      deadline,
      [id = change.user_id, account = change.account, before = user->password,
       hash = std::move(*hash),
       now = micros_at(wall_now())](store::Connection& connection) -> Result<Secret> {
        // The password may have been reset, or the user disabled, during the check.
        const auto user_now = user_of_id(connection, id);
        if (!user_now) return std::unexpected(user_now.error());
        if (user_now->is_disabled || user_now->password != before) return wrong_login();
        if (auto set = set_password(connection, id, hash); !set) {
          return std::unexpected(std::move(set.error()));
        }
        if (auto ended = end_sessions_of(connection, id); !ended) {
          return std::unexpected(std::move(ended.error()));
        }
        if (auto added =
                add_revocation(connection, {.account = account, .subject = id, .runtime = {}}, now);
            !added) {
          return std::unexpected(std::move(added.error()));
        }
        return create_session(connection, id, now);
      });
  if (!token && token.error().code == ErrorCode::unauthenticated) co_return token;
  if (!token) co_return login_unavailable(log_, token.error());
  log_.info("a user changed its password", {{"user", change.user_id}});
  co_return token;
}

}  // namespace gitops::control_plane_server
