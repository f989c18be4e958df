#include "event-reporter/delivery/delivery.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/http/gzip.hpp"
#include "common/http/message.hpp"

namespace gitops::reporter {
namespace {

using std::chrono::milliseconds;

// Number of events whose first refusal is remembered. Further events need one more refusal.
constexpr std::size_t kMaxPutOff = 10'000;
// Time limit for making a large body: one of 100 MB takes about 2 s.
constexpr auto kPackTimeout = std::chrono::minutes(2);
// Pause between checks for a newer token while the token is refused.
constexpr auto kTokenLook = std::chrono::seconds(1);

milliseconds whole_millis(Clock::duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration);
}

std::string describe(int status, const std::string& excerpt, Verdict verdict) {
  std::string text =
      "control plane: " + std::to_string(status) + " " + std::string(http::reason_phrase(status));
  if (verdict == Verdict::unauthorized) text += ", it refuses the token";
  if (verdict == Verdict::misdirected) text += ", this is not the event endpoint";
  if (!excerpt.empty()) text += ": " + excerpt;
  return text;
}

}  // namespace

Verdict verdict_of(int http_status) {
  if (http_status >= 200 && http_status < 300) return Verdict::acknowledged;
  switch (http_status) {
    case 401:
    case 403:
      return Verdict::unauthorized;
    case 413:
      return Verdict::too_large;
    case 408:
    case 425:
    case 429:
    case 499:
      return Verdict::outage;
    case 402:
    case 404:
    case 405:
    case 406:
    case 407:
    case 410:
    case 411:
    case 415:
    case 417:
    case 421:
    case 426:
    case 501:
    case 505:
      return Verdict::misdirected;
    default:
      break;
  }
  if (http_status >= 400 && http_status < 500) return Verdict::refused;
  return http_status >= 500 ? Verdict::outage : Verdict::misdirected;
}

// The result of one attempt.
struct Delivery::Attempt {
  Verdict verdict = Verdict::outage;
  Error error = {};  // set unless acknowledged
  milliseconds took{0};
  std::string excerpt = {};  // of the response
};

// A permit of the breaker, returned by the destructor when its attempt has no outcome.
class Delivery::Permit {
 public:
  Permit(Delivery* delivery, Breaker::Permit permit) : delivery_(delivery), permit_(permit) {}
  Permit(Permit&& other) noexcept
      : delivery_(std::exchange(other.delivery_, nullptr)), permit_(other.permit_) {}
  Permit& operator=(Permit&&) = delete;
  ~Permit() { abandon(); }
  void abandon() {
    if (delivery_ != nullptr) std::exchange(delivery_, nullptr)->abandoned(permit_);
  }
  void succeeded() { std::exchange(delivery_, nullptr)->succeeded(permit_); }
  void failed(const Attempt& attempt) {
    std::exchange(delivery_, nullptr)->failed(permit_, attempt);
  }
  void refused(const Attempt& attempt) {
    std::exchange(delivery_, nullptr)->refused(permit_, attempt);
  }

 private:
  Delivery* delivery_;
  Breaker::Permit permit_;
};

Delivery::Delivery(const Executor& executor, control_plane::Client& platform, Credential& token,
                   Options options, Metrics& metrics)
    : executor_(executor),
      platform_(platform),
      token_(token),
      options_(options),
      metrics_(metrics),
      breaker_(options.breaker, random_seed()),
      state_changed_(executor),
      idle_(executor),
      line_(executor),
      journal_(options.journal),
      history_(executor),
      pool_({.name = "bodies", .threads = 1, .max_queued = 1024}, metrics),
      breaker_state_(metrics.gauge("gitops_event_reporter_breaker_state",
                                   "Circuit breaker of the control plane: 0 closed (events are "
                                   "sent), 1 open, 2 probing")),
      next_probe_(metrics.gauge("gitops_event_reporter_next_probe_timestamp_seconds",
                                "Time of the next probe of the control plane; 0 unless the "
                                "breaker is open")),
      permitted_(metrics.gauge("gitops_event_reporter_permitted_posts",
                               "Events that may be in flight to the control plane at a time")),
      in_flight_(metrics.gauge("gitops_event_reporter_posts_in_flight",
                               "Events in flight to the control plane")) {
  update(breaker_.state());
}

// -- when to send --

Task<> Delivery::ready() {
  while (true) {
    const auto now = Clock::now();
    look_for_newer_token(now);
    if (breaker_.state() == Breaker::State::closed) co_return;
    Deadline until = kNever;  // a probe in flight ends with a change of state
    if (breaker_.state() == Breaker::State::open) {
      until = std::max(breaker_.next_probe(), probe_turn_);
      if (now >= until) {
        probe_turn_ = now + options_.probe_turn;
        co_return;
      }
    }
    if (refused_token_) until = std::min(until, now + kTokenLook);
    co_await state_changed_.wait(until);
  }
}

// Fails with the error that opened the breaker while no event may be sent.
Task<Result<Delivery::Permit>> Delivery::acquire() {
  look_for_newer_token(Clock::now());
  std::optional<WaitLine::Ticket> place;
  while (true) {
    const auto now = Clock::now();
    if (!breaker_.lets_through(now)) co_return std::unexpected(because_);
    if (place ? place->is_first() : line_.empty()) {
      const auto before = breaker_.state();
      if (const auto permit = breaker_.try_acquire(now)) {
        Permit held(this, *permit);
        update(before);
        co_return held;
      }
    }
    if (!place) place.emplace(line_);
    co_await place->wait();
  }
}

Task<> Delivery::idle(Deadline deadline) {
  while (breaker_.in_flight() > 0 && Clock::now() < deadline) co_await idle_.wait(deadline);
}

// Waits; returns false when the breaker opens during the pause.
Task<bool> Delivery::pause(milliseconds delay) {
  const auto until = deadline_after(delay);
  while (breaker_.state() == Breaker::State::closed) {
    if (Clock::now() >= until) co_return true;
    co_await state_changed_.wait(until);
  }
  co_return false;
}

void Delivery::look_for_newer_token(Clock::time_point now) {
  if (!refused_token_ || token_.current() == *refused_token_) return;
  refused_token_.reset();
  breaker_.end_pause(now);
  probe_turn_ = {};
  log_.info("found a newer token for the control plane");
  update(breaker_.state());
}

// -- attempts --

Task<Result<Delivered>> Delivery::deliver(Event event) {
  const auto stopped = [&event] { return event.allowed && !event.allowed(); };
  const auto not_allowed = [] {
    return fail(ErrorCode::unavailable, "the event must not be sent any more");
  };
  std::optional<Backoff> backoff;
  std::optional<std::string> compressed;  // the body
  bool reduced = false;
  bool tried_newer_token = false;
  for (unsigned number = 1;; ++number) {
    auto permit = co_await acquire();
    if (!permit) co_return std::unexpected(permit.error());
    if (stopped()) co_return not_allowed();
    if (!compressed) {
      auto packed = co_await pack(event);
      if (!packed) co_return std::unexpected(packed.error());
      compressed = std::move(*packed);
      if (event.large && stopped()) co_return not_allowed();
    }
    const Secret token = token_.current();
    const auto tried = co_await attempt(event, *compressed, token);
    switch (tried.verdict) {
      case Verdict::acknowledged:
        record(event, number, tried, reduced ? "reduced" : "acknowledged");
        permit->succeeded();
        acknowledge(event, token);
        co_return Delivered{.kind =
                                reduced ? Delivered::Kind::reduced : Delivered::Kind::acknowledged};
      case Verdict::too_large: {
        if (reduced || !event.reduce) co_return refuse(event, number, tried, std::move(*permit));
        auto original = std::make_shared<const std::string>(std::move(event.body));
        auto packed =
            co_await pack(event, [reduce = event.reduce, original] { return reduce(*original); });
        if (!packed) co_return std::unexpected(packed.error());
        if (event.body.empty()) {
          event.body = *original;
          co_return refuse(event, number, tried, std::move(*permit));
        }
        record(event, number, tried, "too_large");
        permit->abandon();
        compressed = std::move(*packed);
        reduced = true;
        continue;
      }
      case Verdict::refused:
        co_return refuse(event, number, tried, std::move(*permit));
      case Verdict::unauthorized:
        if (!tried_newer_token) {
          // Another event may have fetched the newer token already.
          tried_newer_token = co_await token_.refused() || !(token_.current() == token);
          if (tried_newer_token) {
            record(event, number, tried, "failed");
            continue;
          }
        }
        if (tried.error.http_status == 403 && working_token_ == token) {
          co_return refuse(event, number, tried, std::move(*permit));
        }
        record(event, number, tried, "failed");
        refused_token_ = token;
        permit->failed(tried);
        co_return std::unexpected(tried.error);
      case Verdict::outage:
      case Verdict::misdirected:
        record(event, number, tried, "failed");
        refused_token_.reset();
        permit->failed(tried);
        break;
    }
    if (number >= options_.max_attempts) co_return std::unexpected(tried.error);
    if (!backoff) backoff.emplace(options_.backoff, random_seed());
    if (!co_await pause(backoff->next(tried.error.retry_after))) {
      co_return std::unexpected(tried.error);
    }
  }
}

void Delivery::acknowledge(const Event& event, const Secret& token) {
  ++acknowledged_;
  working_token_ = token;
  put_off_.erase(event.id);
}

Task<Result<std::string>> Delivery::pack(Event& event) {
  auto make = event.make_body
                  ? std::exchange(event.make_body, {})
                  : [body = std::move(event.body)]() mutable { return std::move(body); };
  co_return co_await pack(event, std::move(make));
}

Task<Result<std::string>> Delivery::pack(Event& event, MakeBody make) {
  struct Packed {
    std::string body;
    std::string compressed;
  };
  auto work = [make = std::move(make)](const std::stop_token&) {
    Packed packed{.body = make(), .compressed = {}};
    packed.compressed = http::gzip_compress(packed.body);
    return packed;
  };
  Result<Packed> packed;
  if (event.large) {
    packed = co_await pool_.run(deadline_after(kPackTimeout), std::move(work));
  } else {
    packed = work({});
  }
  if (!packed) co_return std::unexpected(packed.error());
  event.body = std::move(packed->body);
  co_return std::move(packed->compressed);
}

// Returns the text of a response, without quotes from the event.
Task<std::string> Delivery::excerpt(Event& event, std::string quoting, Secret token) {
  if (!event.large) co_return control_plane::excerpt_of(quoting, event.body, token);
  // The job may outlive the event, when the caller is cancelled.
  const auto body = std::make_shared<std::string>(std::move(event.body));
  auto made = co_await pool_.run(kNever, [body, quoting = std::move(quoting),
                                          token = std::move(token)](const std::stop_token&) {
    return control_plane::excerpt_of(quoting, *body, token);
  });
  event.body = std::move(*body);
  co_return made ? std::move(*made) : std::string();
}

Task<Delivery::Attempt> Delivery::attempt(Event& event, const std::string& compressed,
                                          const Secret& token) {
  Attempt result;
  if (!http::is_field_value(event.id)) {
    result.verdict = Verdict::refused;
    result.error = {.code = ErrorCode::internal, .message = "the id of the event cannot be sent"};
    co_return result;
  }
  if ((token.empty() && !token_.last_error().empty()) || !http::is_field_value(token.reveal())) {
    result.verdict = Verdict::unauthorized;
    result.error = {.code = ErrorCode::unauthenticated,
                    .message = "control plane: the token is not usable: " +
                               (token.empty() ? token_.last_error()
                                              : "it holds characters that must not be sent")};
    co_return result;
  }
  const auto began = Clock::now();
  const control_plane::Client::Label label{.id = event.id,
                                           .sequence = event.sequence,
                                           .reporter = history_.reporter(),
                                           .seen = history_.position(),
                                           .trace = event.trace};
  auto answer =
      co_await platform_.post_compressed(compressed, label, deadline_after(options_.post_timeout));
  result.took = whole_millis(Clock::now() - began);
  if (!answer) {
    // The http_status of this error is that of an HTTP proxy, and does not concern event or token.
    result.error = std::move(answer.error());
    co_return result;
  }
  result.verdict = verdict_of(answer->status);
  if (result.verdict == Verdict::acknowledged && answer->is_page) {
    result.verdict = Verdict::misdirected;
  }
  if (result.verdict == Verdict::acknowledged) {
    result.error.http_status = answer->status;
    history_.acknowledged(answer->position, answer->resync);
    if (asked_ && !answer->again.empty()) {
      asked_(control_plane::read_report_requests(answer->again));
    }
    co_return result;
  }
  result.excerpt = co_await excerpt(event, std::move(answer->quoting), token);
  result.error = {.code = error_code_of_status(answer->status),
                  .message = describe(answer->status, result.excerpt, result.verdict),
                  .retry_after = answer->retry_after,
                  .http_status = answer->status};
  co_return result;
}

// Handles the refusal of an event. Its cause may be the event, or the path of all events.
Delivered Delivery::refuse(const Event& event, unsigned number, const Attempt& attempt,
                           Permit permit) {
  auto error = attempt.error;
  if (attempt.verdict == Verdict::unauthorized) {
    // Other events are acknowledged with this token. Otherwise the breaker has the unchanged error.
    error.message = describe(error.http_status, attempt.excerpt, Verdict::refused);
  }
  // Nothing was sent when there is no status.
  const bool known = event.refused_before || error.http_status == 0;
  const auto first = put_off_.find(event.id);
  const bool final = known || (first != put_off_.end() && first->second < acknowledged_);
  record(event, number, attempt, final ? "refused" : "put_off");
  if (known) {
    permit.abandon();
  } else if (final && breaker_.state() != Breaker::State::closed && last_acknowledged_ >= opened_) {
    // Another event was in flight when the breaker opened, and was acknowledged since: the control
    // plane takes events, but not this one. No other event may be due that could show it.
    permit.succeeded();
  } else {
    permit.refused(attempt);
  }
  if (!final) {
    if (put_off_.size() >= kMaxPutOff) put_off_.clear();
    put_off_.try_emplace(event.id, acknowledged_);
    return {.kind = Delivered::Kind::put_off, .error = error};
  }
  put_off_.erase(event.id);
  metrics_
      .counter("gitops_event_reporter_dead_letters_total",
               "Events that the control plane refused for good, by the status of its answer",
               {{"reason", error.http_status == 0 ? std::string(to_string(error.code))
                                                  : std::to_string(error.http_status)}})
      .Increment();
  const auto verdict =
      attempts_log_.check("refused " + std::to_string(error.http_status), Clock::now());
  if (verdict.pass) {
    log_.warning("the control plane refuses an event", {{"subject", event.subject},
                                                        {"part", event.part},
                                                        {"event_id", event.id},
                                                        {"code", to_string(error.code)},
                                                        {"reason", error.message},
                                                        {"suppressed", verdict.suppressed}});
  }
  return {.kind = Delivered::Kind::refused, .error = error};
}

Counter& Delivery::reports(const std::string& part, std::string_view result) {
  auto& counter = reports_[{part, result}];
  if (counter == nullptr) {
    counter = &metrics_.counter("gitops_event_reporter_reports_total",
                                "Events posted to the control plane",
                                {{"part", part}, {"result", std::string(result)}});
  }
  return *counter;
}

void Delivery::record(const Event& event, unsigned number, const Attempt& attempt,
                      std::string_view result) {
  reports(event.part, result).Increment();
  const auto& error = attempt.error;
  journal_.add(event.subject, {.time = wall_now(),
                               .part = event.part,
                               .event_id = event.id,
                               .attempt = number,
                               .result = result,
                               .http_status = error.http_status,
                               .bytes = event.body.size(),
                               .took = attempt.took});
  if (attempt.verdict == Verdict::acknowledged) {
    last_acknowledgement_ = wall_now();
    last_acknowledged_ = Clock::now();
    return;
  }
  metrics_
      .counter("gitops_event_reporter_errors_total", "Failed attempts by peer and kind",
               {{"peer", "platform"}, {"code", std::string(to_string(error.code))}})
      .Increment();
  last_platform_error_ = format_rfc3339(wall_now()) + " " + error.message;
  if (breaker_.state() != Breaker::State::closed || attempt.verdict == Verdict::refused) return;
  const auto verdict = attempts_log_.check(
      std::string(to_string(error.code)) + std::to_string(error.http_status), Clock::now());
  if (!verdict.pass) return;
  log_.warning("an event was not acknowledged", {{"subject", event.subject},
                                                 {"code", to_string(error.code)},
                                                 {"reason", error.message},
                                                 {"attempt", number},
                                                 {"suppressed", verdict.suppressed}});
}

// -- the breaker and its users --

void Delivery::succeeded(Breaker::Permit permit) {
  const auto before = breaker_.state();
  breaker_.succeeded(permit);
  if (before != breaker_.state()) on_closed();
  update(before);
}

void Delivery::failed(Breaker::Permit permit, const Attempt& attempt) {
  const auto before = breaker_.state();
  const auto now = Clock::now();
  auto asked_pause = attempt.error.retry_after;
  // This includes a refusal by an HTTP proxy, which may lock an account after failed logins.
  if (attempt.error.code == ErrorCode::unauthenticated ||
      attempt.error.code == ErrorCode::forbidden) {
    asked_pause = std::max(asked_pause, options_.unauthorized_pause);
  }
  breaker_.failed(permit, now, asked_pause);
  if (before != breaker_.state()) on_opened(before, attempt);
  update(before);
}

void Delivery::refused(Breaker::Permit permit, const Attempt& attempt) {
  const auto before = breaker_.state();
  const bool token = attempt.verdict == Verdict::unauthorized;
  breaker_.refused(permit, Clock::now(), token ? options_.unauthorized_pause : milliseconds(0));
  if (before != breaker_.state()) on_opened(before, attempt);
  update(before);
}

void Delivery::abandoned(Breaker::Permit permit) {
  const auto before = breaker_.state();
  breaker_.abandoned(permit, Clock::now());
  if (before != breaker_.state()) probe_turn_ = {};
  update(before);
}

void Delivery::on_opened(Breaker::State before, const Attempt& attempt) {
  const auto now = Clock::now();
  because_ = attempt.error;
  probe_turn_ = {};
  working_token_.reset();
  const auto next = whole_millis(breaker_.next_probe() - now).count();
  if (before == Breaker::State::probing) {
    ++failed_probes_;
    const auto verdict = probes_log_.check(
        std::string(to_string(because_.code)) + std::to_string(because_.http_status), now);
    if (!verdict.pass) return;
    log_.warning("the control plane still takes no events",
                 {{"code", to_string(because_.code)},
                  {"reason", because_.message},
                  {"since_ms", whole_millis(now - opened_).count()},
                  {"next_probe_ms", next},
                  {"suppressed", verdict.suppressed}});
    return;
  }
  opened_ = now;
  opened_time_ = wall_now();
  failed_probes_ = 0;
  const auto line = {Field("code", to_string(because_.code)), Field("reason", because_.message),
                     Field("next_probe_ms", next)};
  if (attempt.verdict == Verdict::unauthorized || attempt.verdict == Verdict::misdirected) {
    log_.error("the control plane takes no events; check its URL and token", line);
  } else {
    log_.warning("the control plane takes no events", line);
  }
}

void Delivery::on_closed() {
  log_.info("the control plane takes events again",
            {{"after_ms", whole_millis(Clock::now() - opened_).count()},
             {"failed_probes", failed_probes_}});
  because_ = {};
  refused_token_.reset();
  for (const auto& recovered : recovered_) recovered();
}

void Delivery::update(Breaker::State before) {
  const auto state = breaker_.state();
  breaker_state_.Set(static_cast<double>(state));
  permitted_.Set(static_cast<double>(breaker_.permitted()));
  in_flight_.Set(static_cast<double>(breaker_.in_flight()));
  next_probe_.Set(0);
  if (state == Breaker::State::open) {
    const auto at = wall_now() + whole_millis(breaker_.next_probe() - Clock::now());
    next_probe_.Set(std::chrono::duration<double>(at.time_since_epoch()).count());
  }
  if (state != before) state_changed_.notify_all();
  if (breaker_.in_flight() == 0) idle_.notify_all();
  if (state == Breaker::State::closed) {
    line_.wake_first();
  } else {
    line_.wake_all();
  }
}

std::string Delivery::last_error() const {
  if (!token_.last_error().empty()) return token_.last_error();
  return because_.message;
}

StatusReport Delivery::status() const {
  StatusEntry platform{.name = "control plane", .message = "takes events"};
  const auto state = breaker_.state();
  if (state == Breaker::State::closed) {
    platform.add_count_of("under_way", breaker_.in_flight(), breaker_.permitted());
  } else {
    platform.state = StatusState::failed;
    platform.message = "takes no events";
    platform.since = opened_time_;
    platform.add_count("failed_probes", failed_probes_, "probes failed");
    if (state == Breaker::State::probing) {
      platform.add_text("probe", "one is under way", "");
    } else {
      const auto wait = std::max(breaker_.next_probe() - Clock::now(), Clock::duration::zero());
      platform.add_duration("next_probe_in", whole_millis(wait), "until the next one");
    }
    platform.add_text("reason", because_.message);
  }
  StatusEntry last{.name = "last acknowledgement"};
  if (last_acknowledgement_) {
    last.add_text("time", format_rfc3339(*last_acknowledgement_), "");
  } else {
    last.state = StatusState::pending;
    last.message = "never";
  }
  StatusReport report{std::move(platform), std::move(last)};
  if (!last_platform_error_.empty()) {
    report.push_back({.name = "last error of platform", .message = last_platform_error_});
  }
  return report;
}

}  // namespace gitops::reporter
