#include "control-plane/live/stream_routes.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "common/http/url.hpp"
#include "control-plane/accounts/scopes.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr auto kOpenLimit = std::chrono::seconds(10);
constexpr auto kCheckLimit = std::chrono::seconds(5);
constexpr auto kCheckAgain = std::chrono::seconds(1);  // while it cannot be found out
constexpr std::string_view kEnd = "event: end\ndata: {\"reason\":\"signed_out\"}\n\n";
constexpr std::string_view kLastEventId = "Last-Event-ID";

std::string text_of(const std::vector<http::ServerSentEvent>& events) {
  std::string text;
  for (const auto& event : events) std::ignore = http::append_event(text, event);
  return text;
}

// The time until a credential expires.
Clock::duration time_left(const Caller& caller) {
  if (caller.valid_until == 0) return Clock::duration::max();
  const auto left = std::chrono::microseconds(caller.valid_until - micros_at(wall_now()));
  return std::max<Clock::duration>(left, Clock::duration::zero());
}

}  // namespace

StreamRoutes::StreamRoutes(Authenticator& authenticator, LiveUpdates& updates, Options options)
    : authenticator_(authenticator), updates_(updates), options_(std::move(options)) {}

std::vector<http::Route> StreamRoutes::routes() {
  std::vector<http::Route> routes;
  // The handler authenticates the caller itself, and again while the stream is open.
  routes.push_back({.method = "GET",
                    .pattern = "/console/api/v1/stream",
                    .guard = http::open_to_all(),
                    .handler = [this](http::Exchange& exchange, const http::RouteParameters&) {
                      return serve(exchange);
                    }});
  return routes;
}

Task<Result<CallerPtr>> StreamRoutes::authenticate(http::Exchange& exchange,
                                                   const std::string& peer) {
  auto caller = co_await authenticator_.authenticate(exchange.request().headers, peer,
                                                     deadline_after(kCheckLimit));
  if (!caller) co_return caller;
  if ((*caller)->is_runtime()) {
    co_return std::unexpected(Error{.code = ErrorCode::forbidden,
                                    .message = "A runtime's token belongs to no user.",
                                    .http_status = 403});
  }
  const std::array scopes{kScopeRead};
  if (auto refused = scope_refusal(**caller, scopes)) {
    co_return std::unexpected(std::move(*refused));
  }
  co_return caller;
}

Task<> StreamRoutes::serve(http::Exchange& exchange) {
  const auto peer = options_.client_of ? options_.client_of(exchange) : exchange.peer_address();
  auto caller = co_await authenticate(exchange, peer);
  if (!caller) {
    std::ignore = co_await exchange.reply(api_error(caller.error()));
    co_return;
  }
  auto topics = read_topics(http::query_parameter(exchange.query(), "topics"));
  if (!topics) {
    std::ignore = co_await exchange.reply(api_error(topics.error()));
    co_return;
  }
  const std::string cursor(exchange.request().headers.find(kLastEventId).value_or(""));
  auto subscription = co_await updates_.subscribe(std::move(*caller), std::move(*topics), cursor,
                                                  deadline_after(kOpenLimit));
  if (!subscription) {
    std::ignore = co_await exchange.reply(api_error(subscription.error()));
    co_return;
  }
  // Tells proxies to pass each event on at once.
  const auto started = co_await exchange.start({.status = 200,
                                                .headers = {{"Content-Type", "text/event-stream"},
                                                            {"Cache-Control", "no-store"},
                                                            {"X-Accel-Buffering", "no"}}});
  if (!started) co_return;
  // A page connects again by itself, also to another replica, and goes on from its last event.
  if (co_await exchange.stream(follow(exchange, *subscription)) != http::StreamEnd::client_left) {
    std::ignore = co_await exchange.finish();
  }
}

Task<> StreamRoutes::follow(http::Exchange& exchange, LiveUpdates::Subscription& subscription) {
  auto& subscriber = subscription.subscriber();
  auto check_at = next_check(subscriber, Clock::now());
  // The first bytes make the client's connection known to be open. A reset comes with them, so that
  // a page does not begin a reading that it has to begin again.
  auto out = std::string(http::kServerSentHeartbeat) + text_of(updates_.hub().take(subscriber));
  auto written_at = Clock::now();
  bool is_checked = true;
  while (true) {
    if (!out.empty()) {
      if (!co_await exchange.write(out)) co_return;
      written_at = Clock::now();
    }
    co_await sleep_for(options_.period);
    if (is_checked) {
      co_await subscription.wait(std::min(written_at + options_.heartbeat, check_at));
    }
    const bool is_flagged = LiveHub::take_check(subscriber) || !is_checked;
    const auto now = Clock::now();
    if (now >= check_at || (is_flagged && is_checked)) {
      const auto checked = co_await check(exchange, subscriber, is_flagged);
      if (checked == Checked::ended) {
        std::ignore = co_await exchange.write(kEnd);
        co_return;
      }
      is_checked = checked == Checked::known;
      check_at = is_checked ? next_check(subscriber, now) : now + kCheckAgain;
    }
    out = is_checked ? text_of(updates_.hub().take(subscriber)) : std::string();
    if (out.empty() && Clock::now() - written_at >= options_.heartbeat) {
      out = http::kServerSentHeartbeat;
    }
  }
}

Clock::time_point StreamRoutes::next_check(const LiveSubscriber& subscriber,
                                           Clock::time_point now) const {
  const auto left =
      std::min<Clock::duration>(options_.recheck, time_left(*subscriber.permissions().caller));
  return now + std::max<Clock::duration>(left, kCheckAgain);
}

Task<StreamRoutes::Checked> StreamRoutes::check(http::Exchange& exchange,
                                                LiveSubscriber& subscriber, bool is_flagged) {
  const auto peer = options_.client_of ? options_.client_of(exchange) : exchange.peer_address();
  auto caller = co_await authenticate(exchange, peer);
  if (!caller) {
    const auto code = caller.error().code;
    const bool is_refused = code == ErrorCode::unauthenticated || code == ErrorCode::forbidden;
    co_return is_refused ? Checked::ended : Checked::unknown;
  }
  if (!is_flagged) co_return Checked::known;
  const auto authorised =
      co_await updates_.authorise(subscriber, std::move(*caller), deadline_after(kCheckLimit));
  co_return authorised ? Checked::known : Checked::unknown;
}

}  // namespace gitops::control_plane_server
