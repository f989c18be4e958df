#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
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

// Authenticates requests by `Authorization` with or without "Bearer ", by `x-access-token`, or by the session cookie,
// whose value is a session or an API key. The cookie is ignored in requests that a page of another site sends. Results
// are cached for 30 s and evicted by forget(). Requests with the same token share one query of the database. Loop
// thread only.
class Authenticator {
 public:
  struct Options {
    Clock::duration ttl = std::chrono::seconds(30);
    std::size_t max_known = 10'000;
    std::size_t max_attempts_per_address = 20;  // different wrong tokens a minute; then 429
    CookieForm cookie = CookieForm::secure;
    std::vector<std::string> own_origins = {};  // of pages: "https://console.example"
  };
  // `database` and `metrics` outlive this object and its calls.
  Authenticator(store::Database& database, Metrics& metrics, Options options);

  // Whether a request may be one of a runtime with a page token. Everything but the query `me` refuses these tokens.
  enum class PageTokens { refused, accepted };
  // Returns the caller. Errors: unauthenticated (no, an unknown, an expired or a revoked token; all of them look the
  // same), too_many_requests, unavailable (the database cannot be queried). Their http_status and retry_after are those
  // of the response.
  Task<Result<CallerPtr>> authenticate(const http::Headers& headers, const std::string& peer,
                                       Deadline deadline,
                                       PageTokens page_tokens = PageTokens::refused);
  // Evicts the cached results of an account, a user or a credential; an empty id evicts all.
  void forget(const std::string& id);
  // Sets the function that forget() calls after each eviction. It outlives the calls.
  void on_forget(std::function<void(const std::string& id)> forgotten);

  [[nodiscard]] CookieForm cookie() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gitops::control_plane_server
