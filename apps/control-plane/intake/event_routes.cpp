#include "control-plane/intake/event_routes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "common/core/time.hpp"
#include "control-plane/accounts/account_store.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxWhy = 500;      // bytes
constexpr std::size_t kMaxEventId = 400;  // bytes; longer ones are cut
constexpr std::size_t kMaxReporter = 200;

constexpr store::Statement kQuarantine{
    .name = "intake.quarantine",
    .sql =
        "INSERT INTO quarantine (account, at, no, runtime, event_id, why, bytes) VALUES ($1, $2, "
        "$3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"};

http::Response json_error(int status, std::string_view code, std::string_view message) {
  std::string body =
      R"({"message":)" + json_string(message) + R"(,"code":)" + json_string(code) + "}";
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

int status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::invalid_data:
    case ErrorCode::invalid_argument:
      return 400;
    case ErrorCode::too_large:
      return 413;
    case ErrorCode::too_many_requests:
      return 429;
    default:
      return 503;
  }
}

http::Response response_of(const Error& error, int status) {
  auto response = json_error(status, to_string(error.code), error.message);
  if (status == 429 || status == 503) {
    const auto wait = std::max(error.retry_after, std::chrono::milliseconds(5'000));
    const auto seconds = status == 429 && error.retry_after.count() > 0
                             ? std::chrono::ceil<std::chrono::seconds>(error.retry_after).count()
                             : std::chrono::ceil<std::chrono::seconds>(wait).count();
    response.headers.add("Retry-After", std::to_string(seconds));
  }
  return response;
}

// Returns the sequence of an event; 0 for an absent or unreadable number, in which case the order of arrival counts.
std::int64_t sequence_of(const http::Headers& headers) {
  const auto text = headers.find("X-Event-Sequence").value_or("");
  std::int64_t sequence = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sequence);
  return error == std::errc() && end == text.data() + text.size() && sequence > 0 ? sequence : 0;
}

std::string clean(std::string_view text, std::size_t most) {
  auto out = shortened(text, most);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

}  // namespace

EventRoutes::EventRoutes(Authenticator& authenticator, EventWriter& writer,
                         store::Database& database, Metrics& metrics, Options options)
    : authenticator_(authenticator),
      writer_(writer),
      database_(database),
      options_(options),
      parser_(EventLimits().max_depth),
      quarantined_(metrics.counter("gitops_control_plane_events_quarantined_total",
                                   "Events that are none, or that the database refuses")),
      unauthenticated_(metrics.counter("gitops_control_plane_events_unauthenticated_total",
                                       "Posts of events without the token of a runtime")) {}

std::vector<http::Route> EventRoutes::routes() {
  const auto row = [this](const char* pattern, auto serve) {
    return http::Route{.method = "POST",
                       .pattern = pattern,
                       .guard = http::open_to_all(),
                       .handler = [this, serve](http::Exchange& exchange,
                                                const auto&) { return (this->*serve)(exchange); },
                       .max_body = options_.max_body};
  };
  return {row("/2.0/api/events", &EventRoutes::serve_event),
          row("/2.0/api/events/event-payload", &EventRoutes::serve_side_event),
          row("/2.0/api/events/error", &EventRoutes::serve_side_event)};
}

Task<std::expected<CallerPtr, http::Response>> EventRoutes::sender(const http::Exchange& exchange) {
  auto caller = co_await authenticator_.authenticate(
      exchange.request().headers, exchange.peer_address(), deadline_after(options_.hold));
  if (!caller) {
    unauthenticated_.Increment();
    co_return std::unexpected(response_of(caller.error(), status_of(caller.error())));
  }
  if (!(*caller)->is_runtime()) {
    co_return std::unexpected(
        json_error(403, "forbidden", "events are taken with the token of a runtime only"));
  }
  co_return std::move(*caller);
}

Task<> EventRoutes::serve_event(http::Exchange& exchange) {
  const auto caller = co_await sender(exchange);
  if (!caller) {
    static_cast<void>(co_await exchange.reply(caller.error()));
    co_return;
  }
  auto body = co_await exchange.read_decoded_body();
  if (!body) {
    if (body.error().http_status == 0) co_return;  // the client is gone
    static_cast<void>(co_await exchange.reply(response_of(body.error(), body.error().http_status)));
    co_return;
  }
  const auto bytes = body->size();
  const auto outcome = co_await store(exchange, **caller, std::move(*body));
  http::Response response{.headers = {{"Content-Type", "application/json"}}, .body = "{}"};
  if (!outcome) {
    const auto& error = outcome.error();
    response = response_of(error, status_of(error));
    if (response.status == 400) co_await quarantine(**caller, exchange, bytes, error.message);
  }
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

Task<Result<Outcome>> EventRoutes::store(const http::Exchange& exchange, const Caller& caller,
                                         std::string body) {
  const auto& headers = exchange.request().headers;
  const EventHead head{.event_id = clean(headers.find("X-Event-Id").value_or(""), kMaxEventId),
                       .sequence = sequence_of(headers),
                       .runtime = caller.runtime,
                       .arrived_at = micros_at(wall_now())};
  auto event = read_event(parser_, body, head);
  if (!event) co_return std::unexpected(std::move(event.error()));
  std::string reporter = clean(headers.find("X-Reporter").value_or(""), kMaxReporter);
  if (reporter.empty()) {
    reporter = event->state.key.origin == Origin::application ? "application" : "resource";
  }
  const auto bytes = body.size();
  co_return co_await writer_.store({.account = caller.account->number,
                                    .reporter = std::move(reporter),
                                    .event = std::move(*event)},
                                   bytes, deadline_after(options_.hold));
}

// Accepts CloudEvents of Git webhooks and errors of event sources. They are not projected yet; a 404 would look like a
// broken control plane to their senders.
Task<> EventRoutes::serve_side_event(http::Exchange& exchange) {
  const auto caller = co_await sender(exchange);
  if (!caller) {
    static_cast<void>(co_await exchange.reply(caller.error()));
    co_return;
  }
  static_cast<void>(
      co_await exchange.reply({.headers = {{"Content-Type", "application/json"}}, .body = "{}"}));
}

// Stores a refused event for operators. A failure to store it does not change the response.
Task<> EventRoutes::quarantine(const Caller& caller, const http::Exchange& exchange,
                               std::size_t bytes, std::string why) {
  quarantined_.Increment();
  if (repeated_.check(caller.runtime, Clock::now()).pass) {
    log_.warning("an event was refused", {{"runtime", caller.runtime}, {"error", why}});
  }
  auto event_id = clean(exchange.request().headers.find("X-Event-Id").value_or(""), kMaxEventId);
  why = clean(why, kMaxWhy);
  const auto written = co_await database_.write(
      deadline_after(options_.hold),
      [account = caller.account->number, at = micros_at(wall_now()), no = ++quarantined_no_,
       runtime = caller.runtime, event_id = std::move(event_id), why = std::move(why),
       bytes](store::Connection& connection) {
        return connection.run(kQuarantine, {account, at, no, runtime, event_id, why, bytes});
      });
  static_cast<void>(written);
}

}  // namespace gitops::control_plane_server
