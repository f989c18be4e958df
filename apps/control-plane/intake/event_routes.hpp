#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/json_text.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/http/router.hpp"
#include "common/store/database.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/intake/event_writer.hpp"

namespace gitops::control_plane_server {

// Serves the event endpoint, which docs/events.md describes from the sender's side: POST /2.0/api/events and its
// siblings /event-payload (CloudEvents of Git webhooks) and /error (errors of event sources), with the token of a
// runtime.
//
// Responses: 200 after the commit, also for a duplicate and a stale event; 400 with a code for a malformed event; 401;
// 403 for the key of a user; 413, 415; 429 and 503 with Retry-After. An event that the database refuses is malformed: 400.
class EventRoutes {
 public:
  struct Options {
    std::size_t max_body = 10UL * 1024 * 1024;  // as sent; the limit of the public gateway
    std::chrono::milliseconds hold{10'000};     // then 503; the event may still be committed
    std::chrono::milliseconds body_deadline{60'000};
  };
  EventRoutes(Authenticator& authenticator, EventWriter& writer, store::Database& database,
              Metrics& metrics, Options options);

  [[nodiscard]] std::vector<http::Route> routes();

 private:
  Task<> serve_event(http::Exchange& exchange);
  Task<> serve_side_event(http::Exchange& exchange);
  // Returns the runtime that sends, or the response that refuses it.
  Task<std::expected<CallerPtr, http::Response>> sender(const http::Exchange& exchange);
  Task<Result<Outcome>> store(const http::Exchange& exchange, const Caller& caller,
                              std::string body);
  Task<> quarantine(const Caller& caller, const http::Exchange& exchange, std::size_t bytes,
                    std::string why);

  Authenticator& authenticator_;
  EventWriter& writer_;
  store::Database& database_;
  Options options_;
  JsonParser parser_;
  std::int64_t quarantined_no_ = 0;
  Log log_{"intake"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& quarantined_;
  Counter& unauthenticated_;
};

}  // namespace gitops::control_plane_server
