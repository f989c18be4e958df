#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/live/live_updates.hpp"

namespace gitops::control_plane_server {

// Serves GET /console/api/v1/stream?topics=index,runtimes,app:UID as text/event-stream: what has changed of the pages
// that the caller has open (docs/reference/control-plane/live-updates.md, "Live updates"). Loop thread only; outlives its requests.
//
// Statuses: 400 for topics, 401 without a session or a key, 403 for a runtime's token or a key without the scope
// `read`, 429 above the limits, 503 while the database cannot be read.
class StreamRoutes {
 public:
  struct Options {
    Clock::duration heartbeat = std::chrono::seconds(15);
    Clock::duration period = std::chrono::milliseconds(100);  // between two writes
    Clock::duration recheck = std::chrono::minutes(5);        // of a session that nobody revoked
    // Returns the client's address behind trusted proxies; empty: the peer's address is used.
    std::function<std::string(http::Exchange&)> client_of = {};
  };
  // `authenticator` and `updates` outlive this object.
  StreamRoutes(Authenticator& authenticator, LiveUpdates& updates, Options options);

  std::vector<http::Route> routes();

 private:
  Task<> serve(http::Exchange& exchange);
  Task<Result<CallerPtr>> authenticate(http::Exchange& exchange, const std::string& peer);
  Task<> follow(http::Exchange& exchange, LiveUpdates::Subscription& subscription);
  enum class Checked : std::uint8_t { known, unknown, ended };
  // Authenticates the client again, and reads its permissions when they may have changed.
  Task<Checked> check(http::Exchange& exchange, LiveSubscriber& subscriber, bool is_flagged);
  [[nodiscard]] Clock::time_point next_check(const LiveSubscriber& subscriber,
                                             Clock::time_point now) const;

  Authenticator& authenticator_;
  LiveUpdates& updates_;
  Options options_;
};

}  // namespace gitops::control_plane_server
