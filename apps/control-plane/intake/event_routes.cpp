#include "control-plane/intake/event_routes.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <system_error>
#include <tuple>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "common/core/time.hpp"
#include "common/http/content_coding.hpp"
#include "common/http/traced.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/audit_routes.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/intake/zstd_coding.hpp"
#include "control-plane/projection/source_report.hpp"
#include "control-plane/storage/source_report_store.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxWhy = 500;      // bytes
constexpr std::size_t kMaxEventId = 400;  // bytes; longer ones are cut
constexpr std::size_t kMaxReporter = 200;
constexpr std::int64_t kTrimEvery = 64;  // rows of the quarantine
constexpr std::chrono::seconds kRetryAfterOutage{5};
constexpr std::chrono::seconds kRetryAfterFull{15};
const http::ContentCodings kCodings{&kZstdCoding, 1};

constexpr store::Statement kQuarantine{
    .name = "intake.quarantine",
    .sql =
        "INSERT INTO quarantine (account, at, no, runtime, event_id, why, bytes) VALUES ($1, $2, "
        "$3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"};
// Some rows at a time, since those of an older version may be many.
constexpr store::Statement kTrimQuarantine{
    .name = "intake.trim_quarantine",
    .sql =
        "DELETE FROM quarantine WHERE (account, at, no) IN (SELECT account, at, no FROM quarantine "
        "WHERE account = $1 AND runtime = $2 AND (at, no) < (SELECT at, no FROM quarantine WHERE "
        "account = $1 AND runtime = $2 ORDER BY at DESC, no DESC LIMIT 1 OFFSET $3) "
        "ORDER BY at, no LIMIT 1000)"};

http::Response accepted() {
  return {.headers = {{"Content-Type", "application/json"}}, .body = "{}"};
}

// Returns the answer to a stored event, with the heads for its reporter; `again` may be empty.
http::Response accepted(const StoredEvent& stored, const std::string& again) {
  auto response = accepted();
  if (const auto& mark = stored.mark) {
    response.headers.add("X-Intake-Position", mark->position);
    if (!mark->resync.empty()) response.headers.add("X-Intake-Resync", mark->resync);
  }
  if (!again.empty()) response.headers.add("X-Intake-Again", again);
  return response;
}

http::Response unavailable(std::string_view message, std::chrono::seconds wait) {
  auto response = api_error(503, message);
  response.headers.add("Retry-After", std::to_string(wait.count()));
  return response;
}

// Returns the response for an error of the intake. Every failure of our own is an outage to a reporter, which then sends
// the event again; its details are in the log.
http::Response refusal(const Error& error) {
  switch (error.code) {
    case ErrorCode::unauthenticated:
    case ErrorCode::forbidden:
    case ErrorCode::invalid_data:
    case ErrorCode::invalid_argument:
    case ErrorCode::too_large:
    case ErrorCode::too_many_requests:
      return api_error(error);
    default:
      break;
  }
  if (error.http_status != 0) return api_error(error);
  const auto wait = std::chrono::ceil<std::chrono::seconds>(error.retry_after);
  return unavailable("events cannot be stored now", std::max(wait, kRetryAfterOutage));
}

// Returns the sequence of an event; 0 without one, in which case the order of arrival counts.
Result<std::int64_t> sequence_of(const http::Headers& headers) {
  const auto text = headers.find("X-Event-Sequence");
  if (!text) return 0;
  std::int64_t sequence = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), sequence);
  if (error == std::errc() && end == text->data() + text->size() && sequence > 0) return sequence;
  return fail(ErrorCode::invalid_argument,
              "X-Event-Sequence is not a positive number of at most 63 bits");
}

std::string clean(std::string_view text, std::size_t most) {
  auto out = shortened(text, most);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

}  // namespace

// A report that is being written, from the construction to the destruction.
class EventRoutes::Permit {
 public:
  Permit(std::shared_ptr<Running> running, std::string key)
      : running_(std::move(running)), key_(std::move(key)) {
    ++(*running_)[key_];
  }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;
  ~Permit() {
    if (--(*running_)[key_] == 0) running_->erase(key_);
  }

 private:
  std::shared_ptr<Running> running_;
  std::string key_;
};

// The bytes of bodies, by account.
struct EventRoutes::Held {
  std::map<std::int64_t, std::size_t> of_account;
  std::size_t all = 0;
};

// The room of one body, until it is given back or destroyed.
class EventRoutes::BodyRoom {
 public:
  BodyRoom(std::shared_ptr<Held> held, std::int64_t account)
      : held_(std::move(held)), account_(account) {}
  BodyRoom(const BodyRoom&) = delete;
  BodyRoom& operator=(const BodyRoom&) = delete;
  ~BodyRoom() { give_back(); }

  // Counts a body that has grown to this size. Returns whether it is within the limits.
  bool grow_to(std::size_t bytes, const Options& limits) {
    const auto more = bytes - std::min(bytes, bytes_);
    auto& own = held_->of_account[account_];
    own += more;
    held_->all += more;
    bytes_ += more;
    return own <= limits.max_held_per_account && held_->all <= limits.max_held;
  }
  void give_back() {
    const auto own = held_->of_account.find(account_);
    if (own == held_->of_account.end()) return;
    own->second -= bytes_;
    held_->all -= bytes_;
    bytes_ = 0;
    if (own->second == 0) held_->of_account.erase(own);
  }

 private:
  std::shared_ptr<Held> held_;
  std::int64_t account_;
  std::size_t bytes_ = 0;
};

EventRoutes::EventRoutes(Authenticator& authenticator, EventWriter& writer,
                         store::Database& database, const StorageWatch& storage, Metrics& metrics,
                         Options options)
    : authenticator_(authenticator),
      writer_(writer),
      database_(database),
      storage_(storage),
      options_(options),
      parser_(EventLimits().max_depth),
      inventories_(writer, database, metrics),
      requests_(database),
      held_(std::make_shared<Held>()),
      quarantined_(metrics.counter("gitops_control_plane_events_quarantined_total",
                                   "Events that are none, or that the database refuses")),
      unauthenticated_(metrics.counter("gitops_control_plane_events_unauthenticated_total",
                                       "Posts of events without the token of a runtime")),
      reports_(metrics.counter("gitops_control_plane_source_reports_total",
                               "Reports of event sources that were stored")) {}

std::vector<http::Route> EventRoutes::routes() {
  const auto row = [this](const char* pattern, Respond respond) {
    return http::Route{.method = "POST",
                       .pattern = pattern,
                       .guard = http::open_to_all(),
                       .handler = [this, respond](http::Exchange& exchange,
                                                  const auto&) { return serve(exchange, respond); },
                       .max_body = options_.max_body};
  };
  return {row("/2.0/api/events", &EventRoutes::take_event),
          row("/2.0/api/events/event-payload", &EventRoutes::take_event_payload),
          row("/2.0/api/events/error", &EventRoutes::take_source_error),
          row("/2.0/api/events/inventory", &EventRoutes::take_inventory)};
}

Task<std::expected<EventRoutes::Received, std::optional<http::Response>>> EventRoutes::receive(
    http::Exchange& exchange) {
  const auto peer = client_of(exchange);
  auto caller = co_await authenticator_.authenticate(exchange.request().headers, peer,
                                                     deadline_after(options_.hold));
  if (!caller) {
    unauthenticated_.Increment();
    audit_refusal(exchange, nullptr, caller.error().message);
    co_return std::unexpected(refusal(caller.error()));
  }
  if (!(*caller)->is_runtime()) {
    audit_refusal(exchange, caller->get(), "not the token of a runtime");
    co_return std::unexpected(api_error(403, "events are taken with the token of a runtime only"));
  }
  if (storage_.is_full()) {
    co_return std::unexpected(
        unavailable("the database has reached its storage limit, or its volume is almost full",
                    kRetryAfterFull));
  }
  // Asked before the body is read, since reading it costs more than the refusal.
  if (auto admitted = writer_.admit((*caller)->account->number, (*caller)->runtime, 0); !admitted) {
    co_return std::unexpected(refusal(admitted.error()));
  }
  auto room = std::make_shared<BodyRoom>(held_, (*caller)->account->number);
  auto body = co_await read_body(exchange, *room);
  if (body) {
    co_return Received{
        .caller = std::move(*caller), .body = std::move(*body), .room = std::move(room)};
  }
  room->give_back();
  if (body.error().http_status == 0) co_return std::unexpected(std::nullopt);
  auto response = api_error(body.error());
  if (response.status == 415) {
    response.headers.add("Accept-Encoding", http::accepted_codings(kCodings));
  }
  // A body that cannot be decoded is an event that was refused.
  if (response.status == 400 || response.status == 413) {
    std::ignore = co_await quarantine(**caller, exchange, 0, body.error().message);
  }
  co_return std::unexpected(std::move(response));
}

Task<Result<std::string>> EventRoutes::read_body(http::Exchange& exchange, BodyRoom& room) const {
  const auto& headers = exchange.request().headers;
  const auto no_room = [] {
    return std::unexpected(Error{.code = ErrorCode::too_many_requests,
                                 .message = "too many bodies are being read",
                                 .retry_after = std::chrono::seconds(1),
                                 .http_status = 429});
  };
  if (const auto known = http::ContentDecoder::make(headers, options_.max_body, kCodings); !known) {
    co_return std::unexpected(known.error());
  }
  std::string sent;
  while (true) {
    const auto part = co_await exchange.read_some();
    if (!part) co_return std::unexpected(part.error());
    if (part->empty()) break;
    sent += *part;
    if (!room.grow_to(sent.size(), options_)) co_return no_room();
  }
  if (sent.empty() || !headers.find("Content-Encoding")) co_return sent;
  // Decoded at once: a decoder that waits for a slow client has up to 8 MiB that nothing counts.
  auto decoder = http::ContentDecoder::make(headers, options_.max_body, kCodings);
  if (!decoder) co_return std::unexpected(std::move(decoder.error()));
  std::string body;
  auto decoded = decoder->feed(sent, body);
  if (decoded) decoded = decoder->finish();
  if (!decoded) co_return std::unexpected(std::move(decoded.error()));
  if (!room.grow_to(body.size(), options_)) co_return no_room();
  co_return body;
}

std::string EventRoutes::client_of(http::Exchange& exchange) const {
  return options_.client_of ? options_.client_of(exchange) : exchange.peer_address();
}

void EventRoutes::audit_refusal(http::Exchange& exchange, const Caller* caller, std::string why) {
  if (options_.audit == nullptr) return;
  auto entry = audit_entry(caller, client_of(exchange), "POST " + std::string(exchange.path()));
  entry.request_id = exchange.added_to_answer(kRequestIdField);
  entry.result = AuditResult::refused;
  entry.detail = std::move(why);
  options_.audit->add_refusal(std::move(entry));
}

Task<> EventRoutes::serve(http::Exchange& exchange, Respond respond) {
  auto received = co_await receive(exchange);
  if (!received && !received.error()) co_return;
  http::Response response;
  if (received) {
    response = co_await (this->*respond)(exchange, *received);
  } else {
    response = std::move(*received.error());
  }
  std::ignore = co_await exchange.reply(std::move(response));
}

Task<http::Response> EventRoutes::take_event(http::Exchange& exchange, const Received& received) {
  auto span = http::server_span(options_.tracer, exchange.request().headers, "POST event");
  span.set("gitops.runtime", received.caller->runtime);
  const auto outcome = co_await store(exchange, received, span.context());
  if (outcome) co_return accepted(outcome->stored, outcome->again);
  span.fail(outcome.error().message);
  const auto& error = outcome.error();
  const bool can_never_be_stored = error.subcode == kEventCannotBeStored;
  auto response = can_never_be_stored ? accepted() : refusal(error);
  if (!can_never_be_stored && response.status != 400) co_return response;
  const auto kept =
      co_await quarantine(*received.caller, exchange, received.body.size(), error.message);
  // An acknowledgement needs the row; a refusal stays one without it.
  if (!kept && can_never_be_stored) co_return refusal(kept.error());
  co_return response;
}

Task<Result<EventRoutes::Acknowledgement>> EventRoutes::store(const http::Exchange& exchange,
                                                              const Received& received,
                                                              const SpanContext& trace) {
  const auto& headers = exchange.request().headers;
  const auto& caller = *received.caller;
  const auto sequence = sequence_of(headers);
  if (!sequence) co_return std::unexpected(sequence.error());
  const EventHead head{.event_id = clean(headers.find("X-Event-Id").value_or(""), kMaxEventId),
                       .sequence = *sequence,
                       .runtime = caller.runtime,
                       .arrived_at = micros_at(wall_now())};
  auto event = read_event(parser_, received.body, head);
  if (!event) co_return std::unexpected(std::move(event.error()));
  std::string reporter = clean(headers.find("X-Reporter").value_or(""), kMaxReporter);
  if (reporter.empty()) {
    reporter = event->state.key.origin == Origin::application ? "application" : "resource";
  }
  auto span = trace.start("store");
  const auto state = span.is_recorded() ? event->state : ObjectState();
  auto arrival = report_arrival(event->state, reporter);
  received.room->give_back();  // the queue counts it
  auto stored =
      co_await writer_.store({.account = caller.account->number,
                              .reporter = std::move(reporter),
                              .event = std::move(*event),
                              .seen = read_position(headers.find("X-Intake-Seen").value_or(""))},
                             received.body.size(), deadline_after(options_.hold));
  if (!stored) {
    span.fail(stored.error().message);
    co_return std::unexpected(std::move(stored.error()));
  }
  if (span.is_recorded() && options_.committed) {
    options_.committed(caller.account->number, state, trace);
  }
  auto again = co_await requests_.head(caller.account->number, std::move(arrival));
  co_return Acknowledgement{.stored = std::move(*stored), .again = std::move(again)};
}

Task<http::Response> EventRoutes::take_inventory(http::Exchange& exchange,
                                                 const Received& received) {
  const auto& caller = *received.caller;
  const auto& headers = exchange.request().headers;
  auto seen = read_position(headers.find("X-Intake-Seen").value_or(""));
  auto name = clean(headers.find("X-Reporter").value_or(""), kMaxReporter);
  if (seen && !name.empty() && received.body == "{}") {
    co_return co_await tell_position(received, std::move(name), std::move(*seen));
  }
  auto inventory = control_plane::read_inventory(parser_, received.body);
  if (!inventory) co_return refusal(inventory.error());
  ReporterName reporter{
      .account = caller.account->number, .runtime = caller.runtime, .name = std::move(name)};
  const auto again = co_await inventories_.take(std::move(reporter), std::move(*inventory),
                                                deadline_after(options_.hold_inventory));
  if (!again && again.error().code == ErrorCode::conflict) co_return api_error(again.error());
  if (!again) co_return refusal(again.error());
  std::string uids;
  for (const auto& uid : *again) {
    if (!uids.empty()) uids += ',';
    append_json_string(uids, uid, JsonEscape::minimal);
  }
  co_return http::Response{.headers = {{"Content-Type", "application/json"}},
                           .body = "{\"again\":[" + uids + "]}"};
}

Task<http::Response> EventRoutes::tell_position(const Received& received, std::string reporter,
                                                IntakePosition seen) {
  const auto& caller = *received.caller;
  auto mark = co_await writer_.touch(
      {.account = caller.account->number, .runtime = caller.runtime, .name = std::move(reporter)},
      {.seen = std::move(seen), .at = micros_at(wall_now())}, deadline_after(options_.hold));
  if (!mark) co_return refusal(mark.error());
  co_return accepted({.mark = std::move(*mark)}, {});
}

Task<http::Response> EventRoutes::take_event_payload(http::Exchange& exchange,
                                                     const Received& received) {
  const auto& caller = *received.caller;
  auto payload = read_event_payload(parser_, received.body, micros_at(wall_now()));
  if (!payload) co_return co_await refuse(exchange, received, payload.error());
  const auto stored =
      co_await write_report(caller, [account = caller.account->number, runtime = caller.runtime,
                                     payload = std::move(*payload)](store::Connection& connection) {
        return put_event_payload(connection, account, runtime, payload);
      });
  if (!stored) co_return refusal(stored.error());
  reports_.Increment();
  co_return accepted();
}

Task<http::Response> EventRoutes::take_source_error(http::Exchange& exchange,
                                                    const Received& received) {
  const auto& caller = *received.caller;
  auto error = read_source_error(parser_, received.body);
  if (!error) co_return co_await refuse(exchange, received, error.error());
  if (repeated_.check(caller.runtime + "/" + error->name, Clock::now()).pass) {
    log_.warning("an event source reports an error", {{"runtime", caller.runtime},
                                                      {"kind", error->kind},
                                                      {"name", error->name},
                                                      {"error", error->message}});
  }
  const auto stored =
      co_await write_report(caller, [account = caller.account->number, runtime = caller.runtime,
                                     error = std::move(*error),
                                     now = micros_at(wall_now())](store::Connection& connection) {
        return put_source_error(connection, account, runtime, error, now);
      });
  if (!stored) co_return refusal(stored.error());
  reports_.Increment();
  co_return accepted();
}

Task<http::Response> EventRoutes::refuse(http::Exchange& exchange, const Received& received,
                                         const Error& error) {
  std::ignore =
      co_await quarantine(*received.caller, exchange, received.body.size(), error.message);
  co_return refusal(error);
}

// Writes a row in a transaction of its own. It does not wait in the queue of events, so it has limits of its own.
Task<Result<void>> EventRoutes::write_report(const Caller& caller, Work work) {
  auto key = std::to_string(caller.account->number) + '/' + caller.runtime;
  const auto own = running_->find(key);
  const auto all =
      std::accumulate(running_->begin(), running_->end(), std::size_t{0},
                      [](std::size_t sum, const auto& entry) { return sum + entry.second; });
  if (all >= options_.max_reports ||
      (own != running_->end() && own->second >= options_.max_reports_per_runtime)) {
    co_return std::unexpected(Error{.code = ErrorCode::too_many_requests,
                                    .message = "too many reports are being written",
                                    .retry_after = std::chrono::seconds(1)});
  }
  const Permit permit(running_, std::move(key));
  co_return co_await database_.write(deadline_after(options_.hold), std::move(work));
}

Task<Result<void>> EventRoutes::quarantine(const Caller& caller, const http::Exchange& exchange,
                                           std::size_t bytes, std::string why) {
  quarantined_.Increment();
  if (repeated_.check(caller.runtime, Clock::now()).pass) {
    log_.warning("an event was refused", {{"runtime", caller.runtime}, {"error", why}});
  }
  auto event_id = clean(exchange.request().headers.find("X-Event-Id").value_or(""), kMaxEventId);
  why = clean(why, kMaxWhy);
  co_return co_await write_report(
      caller,
      [account = caller.account->number, at = micros_at(wall_now()), no = ++quarantined_no_,
       runtime = caller.runtime, event_id = std::move(event_id), why = std::move(why), bytes,
       most = options_.max_quarantined](store::Connection& connection) -> Result<void> {
        auto put =
            connection.execute(kQuarantine, {account, at, no, runtime, event_id, why, bytes});
        if (!put || no % kTrimEvery != 0) return put;
        return connection.execute(kTrimQuarantine, {account, runtime, most - 1});
      });
}

}  // namespace gitops::control_plane_server
