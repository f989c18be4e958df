#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/http/message.hpp"
#include "common/store/database.hpp"
#include "control-plane/accounts/identity.hpp"
#include "control-plane/accounts/sessions.hpp"

namespace gitops::control_plane_server {

// Who sends a request: by `Authorization` with or without "Bearer ", by `x-access-token`, or by the session cookie, whose
// value is a session or an API key. The cookie does not count for requests that a page of another site sends.
// Answers come from memory for 30 s and are dropped by forget(). Requests with the same token wait for one question to
// the database. Loop thread only.
class Authenticator {
 public:
  struct Options {
    Clock::duration ttl = std::chrono::seconds(30);
    std::size_t max_known = 10'000;
    std::size_t max_attempts_per_address = 20;  // wrong ones a minute; then too_many_requests
    CookieForm cookie = CookieForm::secure;
    std::vector<std::string> own_origins = {};  // of pages: "https://console.example"
  };
  // `database` and `metrics` outlive this object and its calls.
  Authenticator(store::Database& database, Metrics& metrics, Options options);

  // Errors: unauthenticated (none, unknown, expired, revoked: not told apart), too_many_requests, unavailable (the
  // database can't be asked: not known). Their http_status and retry_after are those of the response.
  Task<Result<CallerPtr>> authenticate(const http::Headers& headers, const std::string& peer,
                                       Deadline deadline);
  // Forgets what is known of an account, a user or a credential; empty: everything.
  void forget(const std::string& id);

  [[nodiscard]] CookieForm cookie() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gitops::control_plane_server
