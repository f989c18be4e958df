#include "event-reporter/reporter.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <malloc.h>

#include "event-reporter/config.hpp"
#include "event-reporter/manifest.hpp"
#include "event-reporter/shard.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kReadTimeout = std::chrono::seconds(30);
constexpr std::size_t kForeignDeletions = 10'000;

// Fields of an Application that are kept of each.
enum Field : std::size_t {
  sync_status,
  sync_revision,
  sync_revisions,
  health_status,
  operation_phase,
  operation_start,
  project,
  controller_namespace,
};
k8s::FieldSet fields() {
  return k8s::FieldSet({"status.sync.status", "status.sync.revision", "status.sync.revisions",
                        "status.health.status", "status.operationState.phase",
                        "status.operationState.startedAt", "spec.project",
                        "status.controllerNamespace"});
}

Milestone milestone_of(const k8s::Record& record) {
  const auto text = [&record](Field field) {
    return std::string(record.field(field).value_or(""));
  };
  const std::hash<std::string> hash;
  std::string state;
  for (const auto field : {sync_status, sync_revision, sync_revisions, health_status,
                           operation_phase, operation_start}) {
    state += text(field) + '\n';
  }
  return {.operation = hash(text(operation_start)), .state = hash(state)};
}

std::string shard_note(std::uint32_t shard) {
  return "term of shard " + std::to_string(shard);
}

std::optional<Term> read_term(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  Term term = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), term);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return term;
}

k8s::ObjectKey object_key(const std::string& key) {
  const auto slash = key.find('/');
  return {.ns = key.substr(0, slash), .name = key.substr(slash + 1)};
}

}  // namespace

Reporter::Reporter(const Executor& executor, k8s::Client& kubernetes, Gatherer& gatherer,
                   Ledger& ledger, Delivery& delivery, Options options, Metrics& metrics)
    : kubernetes_(kubernetes),
      gatherer_(gatherer),
      ledger_(ledger),
      delivery_(delivery),
      options_(std::move(options)),
      queue_(executor, options_.queue_size),
      dirty_(queue_, options_.dirty),
      claims_changed_(executor),
      application_reporter_(executor, gatherer, ledger, delivery, options_.application, metrics),
      informer_(
          executor, kubernetes,
          {.resource = k8s::resources::kApplications,
           .ns = options_.application_namespaces.empty() ? options_.own_namespace : std::string{},
           .fields = fields(),
           .keep = [this](std::string_view ns, std::string_view) { return watches(ns); },
           .reflector = options_.reflector},
          [this](const k8s::Change& change) { on_change(change); }, metrics, "event_reporter"),
      last_sign_of_life_(Clock::now()),
      queue_size_(metrics.gauge("gitops_event_reporter_queue_size",
                                "Applications that wait in the queue, delayed ones included")),
      overdue_size_(metrics.gauge("gitops_event_reporter_overdue_applications",
                                  "Changed applications that wait for room in the queue")),
      oldest_dirty_(metrics.gauge("gitops_event_reporter_oldest_dirty_seconds",
                                  "Age of the oldest change that was not acknowledged yet")),
      applications_(metrics.gauge("gitops_event_reporter_applications",
                                  "Applications of the shards that this process reports")),
      unchanged_(metrics.counter("gitops_event_reporter_unchanged_total",
                                 "Writes of Applications that changed nothing to report")),
      sweeps_(metrics.counter("gitops_event_reporter_tree_changes_total",
                              "Resource trees found changed without a write to the Application")),
      report_seconds_(metrics.histogram(
          "gitops_event_reporter_report_seconds",
          "From the change of an application until all its events were acknowledged",
          {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300})) {
  delivery_.on_recovery([this] { dirty_.bring_forward(); });
}

void Reporter::start(TaskGroup& group) {
  gatherer_.start(group);
  informer_.start(group);
  group.spawn("claims", [this] { return take_claims(); });
  group.spawn("find-deleted", [this] { return find_deleted(); });
  group.spawn("sweep", [this] { return sweep(); });
  group.spawn("tick", [this] { return tick(); });
  for (std::size_t i = 0; i < options_.workers; ++i) {
    group.spawn("worker", [this] { return work(); });
  }
}

bool Reporter::watches(std::string_view ns) const {
  return ns == options_.own_namespace || matches_any(ns, options_.application_namespaces);
}

// Several Argo CDs may share a cluster; each says whose an Application is once it has seen it.
bool Reporter::is_ours(const k8s::Record& record) const {
  const auto controller = record.field(controller_namespace);
  return !controller || controller->empty() || *controller == options_.own_namespace;
}

std::uint32_t Reporter::shard_of_key(std::string_view key) const {
  return shard_of(key.substr(key.find('/') + 1), options_.replicas);
}

bool Reporter::is_reported(const std::string& key, std::string_view uid,
                           const Digest& change) const {
  const auto known = ledger_.known().find(key);
  return known != ledger_.known().end() && known->second.uid == uid &&
         known->second.change == change;
}

std::size_t Reporter::owned() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(seen_, [this](const auto& seen) { return owns(seen.first); }));
}

// -- what changes --

void Reporter::on_change(const k8s::Change& change) {
  const auto key = change.now->key().to_string();
  if (change.type == k8s::Change::Type::deleted) {
    on_deletion(key, change);
    return;
  }
  if (!is_ours(*change.now)) return;
  const auto digest = change_digest(change.text);
  const auto [seen, first] = seen_.try_emplace(key, digest);
  if (!first && seen->second == digest) {
    unchanged_.Increment();
    return;
  }
  seen->second = digest;
  if (!owns(key)) return;
  if (first && is_reported(key, change.now->uid(), digest)) {
    unchanged_.Increment();
    return;
  }
  dirty_.changed(key, change.text, milestone_of(*change.now), Clock::now());
}

void Reporter::on_deletion(const std::string& key, const k8s::Change& change) {
  const bool was_ours = seen_.erase(key) > 0;
  auto tombstone = change.text.empty() ? application_stub(change.now->key(), change.now->uid(),
                                                          change.now->resource_version())
                                       : std::string(change.text);
  if (was_ours && !owns(key)) {
    foreign_deletions_.push_back({key, tombstone, Clock::now()});
    if (foreign_deletions_.size() > kForeignDeletions) foreign_deletions_.pop_front();
  }
  if ((was_ours && owns(key)) || ledger_.known().contains(key)) {
    dirty_.deleted(key, std::move(tombstone), Clock::now());
  }
}

// What was deleted while nobody watched: the ledger knows it, the first complete list does not.
Task<> Reporter::find_deleted() {
  co_await informer_.wait_synced(kNever);
  std::vector<std::pair<std::string, std::string>> missing;
  for (const auto& [key, head] : ledger_.known()) {
    if (informer_.find(object_key(key)) == nullptr) missing.emplace_back(key, head.uid);
  }
  for (const auto& [key, uid] : missing) {
    Backoff backoff(options_.key_backoff, random_seed());
    while (true) {
      // Not in the list are also objects that could not be read, and namespaces that are not ours
      // to watch any more.
      const auto read = co_await kubernetes_.get(k8s::resources::kApplications, object_key(key),
                                                 deadline_after(kReadTimeout));
      if (!read && read.error().is_transient()) {
        co_await sleep_for(backoff.next(read.error().retry_after));
        continue;
      }
      if (!read && read.error().code == ErrorCode::not_found) {
        dirty_.deleted(key, application_stub(object_key(key), uid, ""), Clock::now());
      }
      break;
    }
  }
}

// -- shards --

void Reporter::claimed(std::uint32_t shard, Term term) {
  const auto before = read_term(ledger_.note(shard_note(shard)));
  ledger_.set_note(shard_note(shard), std::to_string(term));
  if (options_.replicas <= 1 || (before && nobody_between(*before, term))) {
    take_over(shard);
    return;
  }
  claims_.push_back(shard);
  claims_changed_.notify_all();
}

void Reporter::released(std::uint32_t shard) {
  held_.erase(shard);
  std::erase(claims_, shard);
  dirty_.drop_live([this, shard](std::string_view key) { return shard_of_key(key) == shard; });
}

bool Reporter::busy(std::uint32_t shard) const {
  return dirty_.in_work([this, shard](std::string_view key) { return shard_of_key(key) == shard; });
}

Task<> Reporter::take_claims() {
  while (true) {
    while (claims_.empty()) co_await claims_changed_.wait();
    const auto shard = claims_.front();
    if (!co_await start_anew(shard)) {
      co_await sleep_for(kTick);
      continue;
    }
    // Released meanwhile?
    if (claims_.empty() || claims_.front() != shard) continue;
    claims_.pop_front();
    take_over(shard);
  }
}

// Somebody else reported this shard: what we know to be acknowledged may have been replaced since.
// That it was reported stays known, so that its deletion is found.
Task<bool> Reporter::start_anew(std::uint32_t shard) {
  std::vector<std::string> keys;
  for (const auto& [key, head] : ledger_.known()) {
    if (shard_of_key(key) == shard) keys.push_back(key);
  }
  for (const auto& key : keys) {
    auto entry = co_await ledger_.load(key);
    if (!entry) co_return false;
    entry->change.reset();
    entry->application.reset();
    for (auto& [identity, resource] : entry->resources) resource.digest = {};
    ledger_.store(key, *entry);
  }
  co_return true;
}

void Reporter::take_over(std::uint32_t shard) {
  held_.insert(shard);
  const auto now = Clock::now();
  informer_.for_each([&](const k8s::Record& record) {
    const auto key = record.key().to_string();
    const auto seen = seen_.find(key);
    if (shard_of_key(key) != shard || seen == seen_.end()) return;
    if (!is_reported(key, record.uid(), seen->second)) dirty_.changed(key, {}, {}, now);
  });
  for (const auto& deletion : foreign_deletions_) {
    if (shard_of_key(deletion.key) == shard && now - deletion.time < options_.foreign_deletions) {
      dirty_.deleted(deletion.key, deletion.tombstone, now);
    }
  }
}

// -- workers --

Task<> Reporter::work() {
  while (co_await queue_.wait()) {
    co_await delivery_.ready();
    const auto key = queue_.take();
    if (!key) continue;
    dirty_.refill();
    auto work = dirty_.take(*key);
    const auto since = work.since;
    const bool any = !work.empty();
    const auto failures = backoffs_.contains(*key) ? backoffs_.at(*key).attempts() : 0U;
    const auto outcome = co_await report(*key, work, failures);
    if (outcome) {
      backoffs_.erase(*key);
      dirty_.done(*key);
      if (any) {
        const std::chrono::duration<double> took = Clock::now() - since;
        report_seconds_.Observe(took.count());
        ++reported_;
        log_.debug("application reported",
                   {{"application", *key}, {"took_ms", std::llround(took.count() * 1000)}});
      }
      queue_.done(*key);
      continue;
    }
    dirty_.give_back(*key, std::move(work));
    if (delivery_.breaker().state() != Breaker::State::closed) {
      queue_.retry(*key, Clock::duration::zero());  // and waits for ready()
      continue;
    }
    const auto delay = backoff_of(*key).next(outcome.error().retry_after);
    log_failure(*key, outcome.error(), delay);
    queue_.retry(*key, delay);
  }
}

// Takes out of `work` what was reported.
Task<Result<void>> Reporter::report(const std::string& key, DirtyWork& work, unsigned failures) {
  if (!work.tombstone.empty()) {
    const auto gone = co_await application_reporter_.report_gone(key, work.tombstone);
    if (!gone) co_return std::unexpected(gone.error());
    work.tombstone.clear();
  }
  if (!work.live && ledger_.known().contains(key)) co_return co_await report_predecessor(key);
  while (work.live && owns(key)) {
    const bool read = work.states.empty();
    const auto reported = co_await application_reporter_.report_live(
        {.key = key,
         .text = read ? std::string{} : work.states.front().text,
         .superseded = work.states.size() > 1,
         .heartbeat = work.heartbeat,
         .failures = failures});
    if (!reported && reported.error().code == ErrorCode::not_found) break;  // the watch will tell
    if (!reported) co_return std::unexpected(reported.error());
    work.heartbeat = false;
    if (!read) work.states.pop_front();
    if (work.states.empty()) break;
  }
  co_return Result<void>();
}

// What was reported under this name and deleted while nobody watched, when the one that was made
// anew is gone before any report of it said so.
Task<Result<void>> Reporter::report_predecessor(std::string key) {
  const auto read = co_await kubernetes_.get(k8s::resources::kApplications, object_key(key),
                                             deadline_after(kReadTimeout));
  if (!read && read.error().is_transient()) co_return std::unexpected(read.error());
  const auto known = ledger_.known().find(key);
  // One that exists is reported when the watch tells of it.
  if (read || read.error().code != ErrorCode::not_found || known == ledger_.known().end()) {
    co_return Result<void>();
  }
  co_return co_await application_reporter_.report_gone(
      key, application_stub(object_key(key), known->second.uid, ""));
}

Backoff& Reporter::backoff_of(const std::string& key) {
  return backoffs_.try_emplace(key, options_.key_backoff, random_seed()).first->second;
}

// -- what no watch tells --

Task<> Reporter::sweep() {
  while (true) {
    co_await informer_.wait_synced(kNever);
    std::vector<std::pair<std::string, std::string>> round;
    informer_.for_each([&](const k8s::Record& record) {
      auto key = record.key().to_string();
      if (owns(key) && is_ours(record)) {
        round.emplace_back(std::move(key), record.field(project).value_or(""));
      }
    });
    const auto pace = options_.sweep / std::max<std::size_t>(round.size(), 1);
    if (round.empty()) co_await sleep_for(pace);
    for (const auto& [key, project] : round) {
      co_await sleep_for(pace);
      co_await look_at(key, project);
    }
  }
}

Task<> Reporter::look_at(std::string key, std::string project) {
  if (!owns(key) || dirty_.contains(key) || !gatherer_.argocd_trouble().empty()) co_return;
  const auto changed = co_await application_reporter_.tree_changed(key, std::move(project));
  if (!changed || !*changed || !owns(key) || dirty_.contains(key)) co_return;
  if (informer_.find(object_key(key)) == nullptr) co_return;
  sweeps_.Increment();
  dirty_.changed(key, {}, {}, Clock::now());
}

void Reporter::send_sign_of_life() {
  const auto now = Clock::now();
  const auto last = std::max(delivery_.last_acknowledgement(), last_sign_of_life_);
  if (now - last < options_.heartbeat) return;
  bool found = false;
  informer_.for_each([&](const k8s::Record& record) {
    const auto key = record.key().to_string();
    if (found || !owns(key) || !is_ours(record)) return;
    found = true;
    dirty_.heartbeat(key, now);
  });
  last_sign_of_life_ = now;
}

// The texts of many reports leave holes between the small things that stay.
void Reporter::give_memory_back() {
  constexpr std::size_t kMany = 500;
  if (reported_ < kMany || queue_.size() + queue_.in_work() > 0) return;
  reported_ = 0;
  malloc_trim(0);
}

Task<> Reporter::tick() {
  while (true) {
    dirty_.refill();
    const bool argocd_well = gatherer_.argocd_trouble().empty();
    if (argocd_well && !argocd_well_) {
      log_.info("Argo CD answers again");
      dirty_.bring_forward();
    }
    argocd_well_ = argocd_well;
    const auto now = Clock::now();
    while (!foreign_deletions_.empty() &&
           now - foreign_deletions_.front().time > options_.foreign_deletions) {
      foreign_deletions_.pop_front();
    }
    if (informer_.has_synced()) send_sign_of_life();
    applications_.Set(static_cast<double>(owned()));
    queue_size_.Set(static_cast<double>(queue_.size()));
    overdue_size_.Set(static_cast<double>(dirty_.overdue()));
    oldest_dirty_.Set(std::chrono::duration<double>(dirty_.oldest(now)).count());
    give_memory_back();
    co_await sleep_for(kTick);
  }
}

// -- what people see --

void Reporter::log_failure(std::string_view key, const Error& error, Clock::duration delay) {
  const auto verdict = repeats_.check(error.message, Clock::now());
  if (!verdict.pass) return;
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(delay);
  log_.warning("a report failed and will be tried again", {{"application", key},
                                                           {"code", to_string(error.code)},
                                                           {"reason", error.message},
                                                           {"retry_in_ms", millis.count()},
                                                           {"suppressed", verdict.suppressed}});
}

std::vector<ReadyCheck> Reporter::ready_checks() {
  return {{"applications",
           [this] {
             if (!informer_.trouble().empty()) return informer_.trouble();
             return informer_.has_synced() ? std::string{} : std::string("not listed yet");
           }},
          {"argocd", [this] { return gatherer_.argocd_trouble(); }},
          {"platform", [this] { return delivery_.trouble(); }}};
}

std::string Reporter::status() const {
  const auto line = [](std::string_view name, std::string_view value) {
    return std::string(name) + ": " + std::string(value) + "\n";
  };
  const auto age =
      std::chrono::duration_cast<std::chrono::milliseconds>(dirty_.oldest(Clock::now()));
  std::string out =
      line("applications",
           std::to_string(owned()) + (informer_.has_synced() ? "" : " (not listed yet)")) +
      line("queue", std::to_string(queue_.size()) + " of " + std::to_string(queue_.capacity()) +
                        " waiting, " + std::to_string(queue_.in_work()) + " in work, " +
                        std::to_string(dirty_.overdue()) + " overdue") +
      line("oldest unacknowledged change", format_duration(age));
  if (!informer_.trouble().empty()) out += line("kubernetes", informer_.trouble());
  if (!gatherer_.argocd_trouble().empty()) out += line("argocd", gatherer_.argocd_trouble());
  return out;
}

std::vector<k8s::ObjectKey> Reporter::applications() const {
  std::vector<k8s::ObjectKey> out;
  informer_.for_each([&](const k8s::Record& record) {
    if (is_ours(record)) out.push_back(record.key());
  });
  return out;
}

}  // namespace gitops::reporter
