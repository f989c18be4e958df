#include "request-router/webhook_store.hpp"

#include <algorithm>
#include <utility>

namespace gitops::router {
namespace {

using std::chrono::seconds;

// Approximate memory of a webhook besides its bytes.
constexpr std::size_t kOverhead = 512;
// Share of a source: up to this multiple of the free room. A single source gets 31 parts of 32.
constexpr std::size_t kShare = 31;
// Maximum backoff for an unreachable source, and for a refused webhook.
constexpr auto kMaxPause = seconds(10);
constexpr auto kMaxDelay = seconds(60);

std::size_t size_of(const KeptWebhook& webhook) {
  return webhook.bytes.size() + kOverhead;
}

// Returns 1, 2, 4, … seconds.
Clock::duration doubled(unsigned times, seconds most) {
  return std::min(seconds(1LL << std::min(times, 20U)), most);
}

}  // namespace

const WebhookStore::Source* WebhookStore::find(const SourceName& name) const {
  const auto found = std::ranges::find(sources_, name, &Source::name);
  return found == sources_.end() ? nullptr : &*found;
}

WebhookStore::Source& WebhookStore::source_of(const SourceName& name) {
  const auto found = std::ranges::find(sources_, name, &Source::name);
  return found == sources_.end() ? sources_.emplace_back(name) : *found;
}

bool WebhookStore::add(Kept webhook) {
  const auto size = size_of(*webhook);
  if (size > limits_.bytes - bytes_) return false;
  const auto left = limits_.bytes - bytes_ - size;
  const auto* known = find(webhook->source);
  if ((known == nullptr ? 0 : known->bytes) + size > kShare * left) return false;
  auto& source = source_of(webhook->source);
  bytes_ += size;
  source.bytes += size;
  ++source.webhooks;
  source.ready.push_back(webhook->id);
  const auto id = webhook->id;
  ages_.emplace(webhook->since, id);
  items_.emplace(id, Item{.webhook = std::move(webhook), .source = &source});
  return true;
}

bool WebhookStore::must_wait(const SourceName& name) const {
  const auto* source = find(name);
  return source != nullptr && (source->failures > 0 || !source->ready.empty());
}

bool WebhookStore::is_reachable(const SourceName& name) const {
  const auto* source = find(name);
  return source == nullptr || source->failures == 0;
}

void WebhookStore::unreachable(const SourceName& name, std::string_view why,
                               Clock::time_point now) {
  // Ignored without stored webhooks: no attempt would detect that the source is reachable again.
  if (find(name) != nullptr) fail(source_of(name), why, now);
}

// -- scheduling --

void WebhookStore::take_due(Source& source, Clock::time_point now) {
  while (!source.later.empty() && source.later.begin()->first <= now) {
    source.ready.push_back(source.later.begin()->second);
    source.later.erase(source.later.begin());
  }
  while (!source.ready.empty() && !items_.contains(source.ready.front())) {
    source.ready.pop_front();
  }
}

bool WebhookStore::may_try(const Source& source, Clock::time_point now) const {
  if (source.ready.empty() || now < source.paused_until) return false;
  return source.failures == 0 ? source.under_way < attempts_of_one() : source.under_way == 0;
}

// Leaves as many for a new source as each of the others has.
std::size_t WebhookStore::attempts_of_one() const {
  return std::max<std::size_t>(1, limits_.attempts / (sources_.size() + 1));
}

Kept WebhookStore::next(Clock::time_point now, const Enter& enter) {
  forget_unused_sources();
  for (auto source = sources_.begin(); source != sources_.end(); ++source) {
    take_due(*source, now);
    if (!may_try(*source, now) || !enter(source->name)) continue;
    auto& item = items_.at(source->ready.front());
    source->ready.pop_front();
    item.is_under_way = true;
    ++source->under_way;
    sources_.splice(sources_.end(), sources_, source);
    return item.webhook;
  }
  return nullptr;
}

Clock::time_point WebhookStore::due(Clock::time_point now) const {
  auto due = kNever;
  for (const auto& source : sources_) {
    if (!source.ready.empty()) {
      due = std::min(due, std::max(source.paused_until, now + kGateInterval));
    }
    if (!source.later.empty()) due = std::min(due, source.later.begin()->first);
  }
  if (const auto first = oldest()) {
    due = std::min(due, std::max(*first + limits_.age, now + kGateInterval));
  }
  return due;
}

std::uint64_t WebhookStore::take_first_later(Source& source) {
  while (!source.later.empty()) {
    const auto id = source.later.begin()->second;
    source.later.erase(source.later.begin());
    if (!items_.contains(id)) continue;
    source.ready.push_back(id);
    return id;
  }
  return 0;
}

WebhookStore::Hastened WebhookStore::hasten(const SourceName& name, Clock::time_point now) {
  const auto source = std::ranges::find(sources_, name, &Source::name);
  if (source == sources_.end()) return Hastened::not_waiting;
  if (now < source->may_hasten_at) return Hastened::too_soon;
  if (source->failures > 0) {
    source->paused_until = std::min(source->paused_until, now);
    take_due(*source, now);
    if (source->ready.empty()) take_first_later(*source);
  } else {
    const auto id = take_first_later(*source);
    if (id == 0) return Hastened::not_waiting;
    source->hastened = id;
  }
  source->may_hasten_at = now + kHastenInterval;
  return Hastened::now;
}

// -- outcomes --

// Returns an item that was in flight; null if it was removed.
WebhookStore::Item* WebhookStore::back_from(std::uint64_t id) {
  const auto found = items_.find(id);
  if (found == items_.end() || !found->second.is_under_way) return nullptr;
  found->second.is_under_way = false;
  --found->second.source->under_way;
  return &found->second;
}

void WebhookStore::delivered(std::uint64_t id) {
  auto* item = back_from(id);
  if (item == nullptr) return;
  auto& source = *item->source;
  source.failures = 0;
  source.paused_until = {};
  source.last_error.clear();
  if (source.hastened == id) {
    source.hastened = 0;
    while (take_first_later(source) != 0) {
    }
  }
  forget(items_.find(id));
}

// Ignores further failures of webhooks that were in flight together.
void WebhookStore::fail(Source& source, std::string_view why, Clock::time_point now) {
  if (source.failures > 0 && now < source.paused_until) return;
  source.paused_until = now + doubled(source.failures, kMaxPause);
  ++source.failures;
  source.last_error = why;
}

void WebhookStore::unreachable(std::uint64_t id, std::string_view why, Clock::time_point now) {
  auto* item = back_from(id);
  if (item == nullptr) return;
  fail(*item->source, why, now);
  item->source->ready.push_front(id);
}

// The source counts as unreachable until another webhook, or a later attempt, is delivered.
void WebhookStore::unanswered(std::uint64_t id, std::string_view why, Clock::time_point now) {
  auto* item = back_from(id);
  if (item == nullptr) return;
  auto& source = *item->source;
  fail(source, why, now);
  if (source.hastened == id) source.hastened = 0;
  source.later.emplace(now + doubled(item->unanswered, kMaxPause), id);
  ++item->unanswered;
}

void WebhookStore::refused(std::uint64_t id, std::string_view why, Clock::time_point now) {
  auto* item = back_from(id);
  if (item == nullptr) return;
  item->source->failures = 0;
  item->source->paused_until = {};
  item->source->last_error = why;
  if (item->source->hastened == id) item->source->hastened = 0;
  item->source->later.emplace(now + doubled(item->refusals, kMaxDelay), id);
  ++item->refusals;
}

unsigned WebhookStore::refusals(std::uint64_t id) const {
  const auto found = items_.find(id);
  return found == items_.end() ? 0 : found->second.refusals;
}

// -- removal --

Kept WebhookStore::forget(std::unordered_map<std::uint64_t, Item>::iterator item) {
  auto webhook = std::move(item->second.webhook);
  auto& source = *item->second.source;
  const auto size = size_of(*webhook);
  bytes_ -= size;
  source.bytes -= size;
  --source.webhooks;
  ages_.erase(std::pair(webhook->since, webhook->id));
  items_.erase(item);
  return webhook;
}

void WebhookStore::drop(std::uint64_t id) {
  if (const auto found = items_.find(id); found != items_.end()) forget(found);
}

// Removes sources without webhooks.
void WebhookStore::forget_unused_sources() {
  std::erase_if(sources_, [](const Source& source) { return source.webhooks == 0; });
}

std::vector<Kept> WebhookStore::expire(Clock::time_point now) {
  std::vector<Kept> gone;
  for (auto age = ages_.begin(); age != ages_.end() && now - age->first >= limits_.age;) {
    const auto item = items_.find((age++)->second);
    if (!item->second.is_under_way) gone.push_back(forget(item));
  }
  return gone;
}

std::vector<Kept> WebhookStore::clear() {
  std::vector<Kept> gone;
  for (auto& [id, item] : items_) gone.push_back(std::move(item.webhook));
  items_.clear();
  ages_.clear();
  sources_.clear();
  bytes_ = 0;
  return gone;
}

std::optional<Clock::time_point> WebhookStore::oldest() const {
  if (ages_.empty()) return std::nullopt;
  return ages_.begin()->first;
}

std::vector<WebhookStore::SourceState> WebhookStore::sources() const {
  std::vector<SourceState> all;
  for (const auto& source : sources_) {
    if (source.webhooks == 0) continue;
    all.push_back({.name = source.name,
                   .webhooks = source.webhooks,
                   .bytes = source.bytes,
                   .is_reachable = source.failures == 0,
                   .last_error = source.last_error});
  }
  std::ranges::sort(all, {}, &SourceState::name);
  return all;
}

}  // namespace gitops::router
