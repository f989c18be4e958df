#include "request-router/webhooks.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/core/json_value.hpp"
#include "common/core/wakeup.hpp"
#include "common/proxy/upstream.hpp"
#include "request-router/error_answer.hpp"
#include "request-router/routing.hpp"

namespace gitops::router {
namespace {

using Json = nlohmann::ordered_json;

// Number of refusals (3xx, 4xx) that are retried: a starting event source may refuse at first.
constexpr unsigned kRefusals = 3;
constexpr std::size_t kMaxLost = 100;  // listed
constexpr auto kLook = std::chrono::seconds(1);
constexpr auto kRest = std::chrono::milliseconds(50);  // interval of checks while draining
// Time limit for the disk to store a record.
constexpr auto kDiskTimeLimit = std::chrono::seconds(10);
// Maximum size of a response: its head, and a body for the sender.
constexpr std::size_t kMaxHead = 32 * 1024;
constexpr std::size_t kMaxBody = 16 * 1024;
constexpr int kMaxInterim = 16;

const Log& log() {
  static const Log kLog("webhooks");
  return kLog;
}

bool is_refusal(int status, unsigned refusals_before) {
  if (proxy::is_unavailable(status) || status == 408 || status == 429) return true;
  return status >= 300 && status < 500 && refusals_before < kRefusals;
}

http::Response accepted() {
  http::Response response{.status = 202, .headers = {{"Content-Type", "application/json"}}};
  response.headers.add("Cache-Control", "no-store");
  response.body = "{\"message\":\"the webhook is kept until its event source takes it\"}\n";
  return response;
}

Task<Result<void>> read_more(net::Channel& channel, std::string& received) {
  std::array<char, 4096> room;
  const auto size = co_await channel.read_some(
      std::span(room).first(std::min(room.size(), received.capacity() - received.size())));
  if (!size) co_return std::unexpected(size.error());
  if (*size == 0) co_return fail(ErrorCode::unavailable, "it closed the connection");
  received.append(room.data(), *size);
  co_return Result<void>{};
}

// Returns the status of the response, and its body if it is short.
Task<Result<http::Response>> read_answer(net::Channel& channel) {
  std::string received;
  received.reserve(kMaxHead + kMaxBody);  // the head is read in place
  http::ResponseHeadParser parser({.max_line = kMaxHead, .max_head = kMaxHead, .max_fields = 200});
  std::size_t head_size = 0;
  for (int interim = 0; head_size == 0;) {
    const auto size = parser.next(received);
    if (!size) co_return std::unexpected(size.error());
    if (*size > 0 && parser.head().status >= 200) {
      head_size = *size;
    } else if (*size > 0) {
      if (++interim > kMaxInterim) co_return fail(ErrorCode::protocol, "too many interim answers");
      received.erase(0, *size);
      parser.reset();
    } else if (received.size() >= kMaxHead) {
      co_return fail(ErrorCode::protocol, "the head of its answer is too large");
    } else if (auto more = co_await read_more(channel, received); !more) {
      co_return std::unexpected(more.error());
    }
  }
  const auto& head = parser.head();
  http::Response response{.status = head.status};
  if (const auto type = head.find(http::FieldId::content_type)) {
    response.headers.add("Content-Type", std::string(*type));
  }
  const auto length = head.content_length.value_or(0);
  if (length > kMaxBody) co_return response;
  while (received.size() < head_size + length) {
    // Only the status is needed.
    if (auto more = co_await read_more(channel, received); !more) co_return response;
  }
  response.body = received.substr(head_size, length);
  co_return response;
}

// `connected`: set when there is a connection, so that the event source may have seen the webhook.
Task<Result<http::Response>> send(const WebhookRoute& route, std::string_view bytes,
                                  bool& connected) {
  auto connection = co_await route.upstream->connect();
  if (!connection) co_return std::unexpected(connection.error());
  connected = true;
  auto& channel = *(*connection)->channel;
  channel.set_deadline(deadline_after(route.limits.answer_timeout));
  const auto written = co_await channel.write(bytes);
  if (!written && written.error().code == ErrorCode::timeout) {
    co_return std::unexpected(written.error());
  }
  // An early response, such as 413, may have arrived before the connection broke.
  auto answer = co_await read_answer(channel);
  if (!answer && !written) co_return std::unexpected(written.error());
  co_return answer;
}

std::string_view to_string(WebhookStore::Hastened hastened) {
  switch (hastened) {
    case WebhookStore::Hastened::now:
      return "now";
    case WebhookStore::Hastened::too_soon:
      return "too_soon";
    case WebhookStore::Hastened::not_waiting:
      return "not_waiting";
  }
  std::unreachable();
}

}  // namespace

// Sender of a webhook, while it waits.
struct Webhooks::Sender {
  Sender(const Executor& executor, Kept w)
      : webhook(std::move(w)),
        room(std::make_shared<Wakeup>(executor)),
        durable(std::make_shared<Wakeup>(executor)),
        answered(std::make_shared<Wakeup>(executor)) {}

  const Kept webhook;
  const std::shared_ptr<Wakeup> room;
  const std::shared_ptr<Wakeup> durable;
  const std::shared_ptr<Wakeup> answered;
  bool is_kept = false;   // guarded by mutex_
  http::Response answer;  // set when the event source has responded
};

// Webhook in flight, with its permit of the gate.
struct Webhooks::Attempt {
  Kept webhook;
  bool connected = false;  // to the event source
  std::shared_ptr<const WebhookRoute> route;
  std::optional<Gate::Permit> permit;
};

Webhooks::Webhooks(const Executor& executor, Metrics& metrics, Options options)
    : executor_(executor),
      metrics_(metrics),
      options_(std::move(options)),
      kept_total_(metrics.counter("gitops_router_kept_webhooks_total",
                                  "Webhooks that were kept, to be delivered later")),
      delivered_total_(metrics.counter("gitops_router_delivered_kept_webhooks_total",
                                       "Kept webhooks that their event source took")),
      kept_now_(metrics.gauge("gitops_router_kept_webhooks", "Webhooks that are kept")),
      kept_bytes_(metrics.gauge("gitops_router_kept_webhook_bytes", "Memory that they take")),
      oldest_seconds_(metrics.gauge("gitops_router_oldest_kept_webhook_seconds",
                                    "Since when the oldest of them is kept")),
      store_(options_.limits),
      changed_(std::make_shared<Event>(executor)),
      tasks_(executor) {
  // A counter that begins with its first loss would hide that loss from Prometheus' increase().
  for (const auto* reason : {"no_room", "expired", "rejected", "stopped"}) lost_total(reason);
}

Counter& Webhooks::lost_total(std::string_view reason) {
  return metrics_.counter(
      "gitops_router_lost_webhooks_total",
      "Webhooks that no event source got: no_room (refused with 503), expired (kept for an "
      "hour), rejected (by the event source), stopped (with the router)",
      {{"reason", std::string(reason)}});
}

Result<void> Webhooks::start(RouteOf route_of) {
  route_of_ = std::move(route_of);
  if (!options_.journal_folder.empty()) {
    journal_ = std::make_unique<WebhookJournal>(
        WebhookJournal::Options{.folder = options_.journal_folder},
        [this](std::vector<RecoveredWebhook> found) { return recover(std::move(found)); },
        metrics_.counter("gitops_router_webhook_journal_errors_total",
                         "Failures of the journal; the webhooks concerned are in memory only"));
    if (auto opened = journal_->open(); !opened) return opened;
  }
  tasks_.spawn("deliver", [this] { return deliver_all(); });
  return {};
}

Task<> Webhooks::stop(Deadline deadline) {
  while (may_deliver_more() && Clock::now() < deadline) co_await sleep_for(kRest);
  tasks_.cancel();
  co_await tasks_.join();
  {
    const std::lock_guard lock(mutex_);
    if (!journal_) {
      for (const auto& webhook : store_.clear()) lost(*webhook, "stopped");
      size_ = 0;
    }
  }
  journal_.reset();
}

bool Webhooks::may_deliver_more() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(store_.sources(), &WebhookStore::SourceState::is_reachable);
}

void Webhooks::wake() {
  asio::post(executor_, [changed = changed_] { changed->notify_all(); });
}

// -- storing --

bool Webhooks::must_wait(const SourceName& source) const {
  if (size_ == 0) return false;
  const std::lock_guard lock(mutex_);
  return store_.must_wait(source);
}

Task<http::Response> Webhooks::keep(SourceName source, const proxy::WholeRequest& request,
                                    std::string failure) {
  auto webhook = std::make_shared<KeptWebhook>();
  webhook->id = ++last_id_;
  webhook->source = source;
  webhook->request_id = request.request_id;
  webhook->since = Clock::now();
  std::size_t size = request.forwarded_head.size();
  for (const auto part : request.body) size += part.size();
  webhook->bytes.reserve(size);
  webhook->bytes += request.forwarded_head;
  for (const auto part : request.body) webhook->bytes += part;

  const auto sender = std::make_shared<Sender>(co_await asio::this_coro::executor, webhook);
  if (!co_await take_room(sender)) {
    co_return error_answer(503, "the event source takes no webhooks, and too many are kept already",
                           request.head.find(http::FieldId::accept));
  }
  bool may_be_soon = false;
  {
    const std::lock_guard lock(mutex_);
    if (!failure.empty()) store_.unreachable(source, failure, Clock::now());
    may_be_soon = store_.is_reachable(source);
  }
  if (journal_) co_await sender->durable->wait(deadline_after(kDiskTimeLimit));
  if (may_be_soon && co_await sender->answered->wait(deadline_after(options_.answer_wait))) {
    co_return std::move(sender->answer);
  }
  co_return accepted();
}

Task<bool> Webhooks::take_room(std::shared_ptr<Sender> sender) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty() && store_.add(sender->webhook)) {
      kept(sender);
      co_return true;
    }
    waiting_.push_back(sender);
    offer_room();
  }
  struct Leave {
    Webhooks& webhooks;
    std::shared_ptr<Sender> sender;
    ~Leave() {
      const std::lock_guard lock(webhooks.mutex_);
      webhooks.waiting_.remove(sender);
    }
  };
  const Leave leave{*this, sender};
  co_await sender->room->wait(deadline_after(options_.room_timeout));
  const std::lock_guard lock(mutex_);
  if (!sender->is_kept) lost(*sender->webhook, "no_room");
  co_return sender->is_kept;
}

// Continues after the webhook was stored.
void Webhooks::kept(const std::shared_ptr<Sender>& sender) {
  sender->is_kept = true;
  senders_[sender->webhook->id] = sender;
  size_ = store_.size();
  kept_total_.Increment();
  if (journal_) {
    journal_->keep(sender->webhook,
                   [durable = sender->durable](const Result<void>&) { durable->ring(); });
  }
  wake();
}

// Grants room to the longest waiting senders, as far as it suffices.
void Webhooks::offer_room() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto sender = *next;
    if (!store_.add(sender->webhook)) {
      ++next;
      continue;
    }
    next = waiting_.erase(next);
    kept(sender);
    sender->room->ring();
  }
}

// Takes over the webhooks of a journal.
std::optional<std::vector<Kept>> Webhooks::recover(std::vector<RecoveredWebhook> found) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto wall = wall_now();
  std::vector<Kept> taken;
  for (auto& item : found) {
    auto webhook = std::make_shared<KeptWebhook>(std::move(item.webhook));
    webhook->id = ++last_id_;
    webhook->since = now - std::max(wall - item.since, WallTime::duration::zero());
    if (!store_.add(webhook)) {
      for (const auto& known : taken) store_.drop(known->id);
      return std::nullopt;
    }
    taken.push_back(std::move(webhook));
  }
  size_ = store_.size();
  wake();
  return taken;
}

// -- delivery --

Task<> Webhooks::deliver_all() {
  while (true) {
    drop_expired(Clock::now());
    auto due = kNever;
    if (auto attempt = next_attempt(due)) {
      ++attempts_;
      tasks_.spawn("webhook", [this, attempt] { return deliver(attempt); });
    } else {
      co_await changed_->wait(std::min(due, deadline_after(kLook)));
    }
  }
}

// Returns the next attempt; null if there is none. `due` is then the time of the next call.
std::shared_ptr<Webhooks::Attempt> Webhooks::next_attempt(Clock::time_point& due) {
  if (attempts_ >= options_.limits.attempts) return nullptr;
  const auto now = Clock::now();
  auto attempt = std::make_shared<Attempt>();
  const std::lock_guard lock(mutex_);
  attempt->webhook = store_.next(now, [&](const SourceName& source) {
    auto route = route_of_(source);
    if (!route) return false;  // currently not served
    auto permit = (*route)->gate->acquire(now);
    if (!permit) return false;
    attempt->route = std::move(*route);
    attempt->permit.emplace(std::move(permit));
    return true;
  });
  due = store_.due(now);
  return attempt->webhook ? attempt : nullptr;
}

Task<> Webhooks::deliver(std::shared_ptr<Attempt> attempt) {
  struct Ended {
    Webhooks& webhooks;
    ~Ended() {
      --webhooks.attempts_;
      webhooks.changed_->notify_all();
    }
  };
  const Ended ended{*this};
  const auto answer = co_await send(*attempt->route, attempt->webhook->bytes, attempt->connected);
  attempt->permit.reset();
  settle(*attempt, answer);
}

void Webhooks::settle(const Attempt& attempt, const Result<http::Response>& answer) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto& webhook = attempt.webhook;
  if (!answer) {
    const auto& why = answer.error().message;
    return attempt.connected ? store_.unanswered(webhook->id, why, now)
                             : store_.unreachable(webhook->id, why, now);
  }
  if (is_refusal(answer->status, store_.refusals(webhook->id))) {
    return store_.refused(webhook->id,
                          "the event source answered " + std::to_string(answer->status), now);
  }
  if (answer->status >= 300) {
    lost(*webhook, "rejected");
  } else {
    delivered_total_.Increment();
  }
  if (const auto sender = senders_[webhook->id].lock()) {
    sender->answer = *answer;
    sender->answered->ring();
  }
  store_.delivered(webhook->id);
  gone(webhook);
  offer_room();
}

void Webhooks::drop_expired(Clock::time_point now) {
  if (size_ == 0) return;
  const std::lock_guard lock(mutex_);
  for (const auto& webhook : store_.expire(now)) {
    lost(*webhook, "expired");
    gone(webhook);
  }
  offer_room();
}

// Continues after the webhook was removed from the store.
void Webhooks::gone(const Kept& webhook) {
  senders_.erase(webhook->id);
  size_ = store_.size();
  if (journal_) journal_->gone(webhook->id);
}

void Webhooks::lost(const KeptWebhook& webhook, std::string_view reason) {
  lost_total(reason).Increment();
  lost_.push_back({.at = wall_now(),
                   .source = webhook.source,
                   .request_id = webhook.request_id,
                   .reason = std::string(reason)});
  if (lost_.size() > kMaxLost) lost_.pop_front();
  const auto verdict = reports_.check(
      std::string(reason) + " " + webhook.source.ns + "/" + webhook.source.event_source,
      Clock::now());
  if (!verdict.pass) return;
  log().warning("a webhook was lost", {{"reason", reason},
                                       {"namespace", webhook.source.ns},
                                       {"event_source", webhook.source.event_source},
                                       {"request_id", webhook.request_id},
                                       {"suppressed", verdict.suppressed}});
}

// -- status --

std::string Webhooks::page() const {
  const std::lock_guard lock(mutex_);
  const auto oldest = store_.oldest();
  const auto age = oldest ? std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - *oldest)
                          : std::chrono::seconds(0);
  Json json{{"kept", store_.size()},
            {"bytes", store_.bytes()},
            {"oldest_seconds", age.count()},
            {"waiting_for_room", waiting_.size()},
            {"journal", options_.journal_folder.string()},
            {"sources", Json::array()},
            {"lost", Json::array()}};
  for (const auto& source : store_.sources()) {
    json["sources"].push_back({{"namespace", source.name.ns},
                               {"event_source", source.name.event_source},
                               {"kept", source.webhooks},
                               {"bytes", source.bytes},
                               {"reachable", source.is_reachable},
                               {"last_error", source.last_error}});
  }
  for (const auto& webhook : lost_) {
    json["lost"].push_back({{"time", format_rfc3339(webhook.at)},
                            {"namespace", webhook.source.ns},
                            {"event_source", webhook.source.event_source},
                            {"request_id", webhook.request_id},
                            {"reason", webhook.reason}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string Webhooks::redeliver(std::string_view event_source) {
  Json json{{"sources", Json::array()}};
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (const auto& source : store_.sources()) {
      const auto& name = source.name;
      const bool is_meant = event_source.empty() || event_source == name.event_source ||
                            event_source == name.ns + "/" + name.event_source;
      if (!is_meant) continue;
      json["sources"].push_back({{"namespace", name.ns},
                                 {"event_source", name.event_source},
                                 {"kept", source.webhooks},
                                 {"attempt", to_string(store_.hasten(name, now))}});
    }
  }
  wake();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

void Webhooks::count() {
  const std::lock_guard lock(mutex_);
  kept_now_.Set(static_cast<double>(store_.size()));
  kept_bytes_.Set(static_cast<double>(store_.bytes()));
  const auto oldest = store_.oldest();
  oldest_seconds_.Set(oldest ? std::chrono::duration<double>(Clock::now() - *oldest).count() : 0);
}

}  // namespace gitops::router
