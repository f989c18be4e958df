#pragma once

#include <chrono>
#include <string>

#include "common/core/async.hpp"
#include "common/core/attempts.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/secret.hpp"
#include "common/store/database.hpp"
#include "control-plane/accounts/passwords.hpp"

namespace gitops::control_plane_server {

// Logs users in by name and password. Attempts are limited for each address and each user name before a password is
// hashed. An attempt counts whether it succeeds or fails, so that parallel attempts do not bypass the limit. Unknown
// users, disabled users, users of identity providers and wrong passwords get the same error after the same work. Loop
// thread only.
class Login {
 public:
  struct Options {
    Attempts::Options per_address{.burst = 20, .period = std::chrono::seconds(3)};
    Attempts::Options per_user{.burst = 10, .period = std::chrono::seconds(30)};
  };
  // `database`, `passwords` and `metrics` outlive this object and its calls.
  Login(store::Database& database, Passwords& passwords, Metrics& metrics, Options options);

  struct Outcome {
    Secret token;  // of the new session
    std::string user_id;
  };
  // Checks the password and begins a session. Errors, with the http_status and retry_after of the response:
  // unauthenticated, too_many_requests, unavailable.
  Task<Result<Outcome>> log_in(std::string name, Secret password, std::string peer,
                               Deadline deadline);

  struct PasswordChange {
    std::string user_id;
    std::int64_t account = 0;  // of the session
    Secret password;           // the present one
    Secret new_password;
  };
  // Changes a password after checking the present one, ends all sessions of the user and begins a new one, whose token it
  // returns. Attempts count as logins. Errors besides those of log_in(): invalid_argument for a new password that is
  // refused.
  Task<Result<Secret>> change_password(PasswordChange change, std::string peer, Deadline deadline);
  // Returns the PHC string of a new password. Errors: invalid_argument, too_many_requests.
  Task<Result<std::string>> hash_new(Secret password, Deadline deadline);

 private:
  // Uses up one attempt; too_many_requests when the address or the user has none left.
  Result<void> take_attempt(const std::string& name, const std::string& peer);

  store::Database& database_;
  Passwords& passwords_;
  Attempts per_address_;
  Attempts per_user_;
  Log log_{"login"};
  Counter& succeeded_;
  Counter& failed_;
  Counter& limited_;
};

}  // namespace gitops::control_plane_server
