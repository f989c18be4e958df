#include "event-reporter/reporter.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <boost/asio/experimental/parallel_group.hpp>
#include <malloc.h>

#include "common/core/encoding.hpp"
#include "event-reporter/config.hpp"
#include "event-reporter/manifest.hpp"
#include "event-reporter/payload.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kPostTimeout = std::chrono::seconds(30);
constexpr auto kTick = std::chrono::seconds(1);

// Identifies one event: the same change of the same part with the same content has the same id, so
// that a receiver can drop what it got twice.
std::string event_id(const Report& report, std::string_view part, std::string_view content) {
  std::string id(report.uid());
  id.append("/").append(report.resource_version()).append("/").append(part);
  return id.append("/").append(content);
}

// The id's part for a resource: names come from the cluster and may hold anything.
std::string part_of(const ResourceId& id) {
  std::string out;
  for (const auto& piece : {id.group, id.version, id.kind, id.ns, id.name}) {
    if (!out.empty()) out += ':';
    out += percent_encode(piece);
  }
  return out;
}

bool worth_another_attempt(const Error& error) {
  return error.is_transient() || error.code == ErrorCode::tls || error.code == ErrorCode::timeout;
}

k8s::InformerOptions informer_options(const Reporter::Options& options) {
  const auto own = options.own_namespace;
  const auto patterns = options.application_namespaces;
  const auto shard = options.shard;
  return {.resource = k8s::resources::kApplications,
          .ns = patterns.empty() ? own : std::string{},
          .fields = k8s::FieldSet({"status.sync.status", "status.health.status"}),
          .keep =
              [own, patterns, shard](std::string_view ns, std::string_view name) {
                return (ns == own || matches_any(ns, patterns)) && shard.owns(name);
              },
          .reflector = options.reflector};
}

}  // namespace

Reporter::Reporter(const Executor& executor, k8s::Client& kubernetes, Gatherer& gatherer,
                   platform::Client& platform, Credential& platform_token, Options options,
                   Metrics& metrics)
    : executor_(executor),
      gatherer_(gatherer),
      platform_(platform),
      platform_token_(platform_token),
      options_(std::move(options)),
      metrics_(metrics),
      queue_(executor, options_.queue_size),
      informer_(
          executor, kubernetes, informer_options(options_),
          [this](const k8s::Change& change) { on_change(change); }, metrics, "event_reporter"),
      queue_size_(metrics.gauge("gitops_event_reporter_queue_size",
                                "Applications that wait in the queue, delayed ones included")),
      overdue_size_(metrics.gauge("gitops_event_reporter_overdue_applications",
                                  "Changed applications that wait for room in the queue")),
      oldest_dirty_(metrics.gauge("gitops_event_reporter_oldest_dirty_seconds",
                                  "Age of the oldest change that was not acknowledged yet")),
      applications_(
          metrics.gauge("gitops_event_reporter_applications", "Applications of this shard")),
      unchanged_(metrics.counter("gitops_event_reporter_unchanged_total",
                                 "Writes of Applications that changed nothing to report")),
      report_seconds_(metrics.histogram(
          "gitops_event_reporter_report_seconds",
          "From the change of an application until all its events were acknowledged",
          {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300})) {}

void Reporter::start(TaskGroup& group) {
  gatherer_.start(group);
  informer_.start(group);
  group.spawn("tick", [this] { return tick(); });
  for (std::size_t i = 0; i < options_.workers; ++i) {
    group.spawn("worker", [this] { return work(); });
  }
}

// -- what is dirty --

void Reporter::on_change(const k8s::Change& change) {
  const auto key = change.now->key().to_string();
  if (change.type == k8s::Change::Type::deleted) {
    seen_.erase(key);
    auto& dirty = dirty_[key];
    drop_text(dirty.text);
    dirty.live = false;
    // A deletion that is known already comes first: the one in between was never reported.
    if (dirty.tombstone.empty()) {
      dirty.tombstone = change.text.empty() ? application_stub(change.now->key(), change.now->uid(),
                                                               change.now->resource_version())
                                            : std::string(change.text);
    }
    mark(key, dirty);
    return;
  }
  const auto digest = change_digest(change.text);
  const auto [seen, first] = seen_.try_emplace(key, digest);
  if (!first && seen->second == digest) {
    unchanged_.Increment();
    return;
  }
  seen->second = digest;
  auto& dirty = dirty_[key];
  dirty.live = true;
  keep_text(dirty.text, change.text);
  mark(key, dirty);
}

void Reporter::mark(const std::string& key, Dirty& dirty) {
  if (dirty.since == Clock::time_point{}) dirty.since = Clock::now();
  if (!queue_.add(key)) overdue_.insert(key);
}

void Reporter::keep_text(std::string& slot, std::string_view text) {
  drop_text(slot);
  if (kept_bytes_ + text.size() > options_.kept_text) return;
  slot = text;
  kept_bytes_ += slot.size();
}

void Reporter::drop_text(std::string& slot) {
  kept_bytes_ -= slot.size();
  slot.clear();
  slot.shrink_to_fit();
}

void Reporter::refill() {
  while (!overdue_.empty() && queue_.add(*overdue_.begin())) overdue_.erase(overdue_.begin());
}

Reporter::Dirty Reporter::take(const std::string& key) {
  overdue_.erase(key);
  const auto found = dirty_.find(key);
  if (found == dirty_.end()) return {};
  auto dirty = std::move(found->second);
  dirty_.erase(found);
  kept_bytes_ -= dirty.text.size();
  return dirty;
}

// What could not be reported; a newer change of the same application may have come meanwhile.
void Reporter::give_back(const std::string& key, Dirty old) {
  auto& dirty = dirty_[key];
  if (dirty.since == Clock::time_point{}) {
    dirty.live = old.live;
    if (old.live) keep_text(dirty.text, old.text);
  }
  dirty.since = old.since;
  if (!old.tombstone.empty()) dirty.tombstone = std::move(old.tombstone);
}

// -- workers --

Task<> Reporter::work() {
  while (auto key = co_await queue_.next()) {
    refill();
    auto dirty = take(*key);
    const auto since = dirty.since;
    in_work_since_[*key] = since;
    const auto outcome = co_await report(*key, dirty);
    in_work_since_.erase(*key);
    if (outcome) {
      backoffs_.erase(*key);
      if (since != Clock::time_point{}) {
        const std::chrono::duration<double> took = Clock::now() - since;
        report_seconds_.Observe(took.count());
        ++reported_;
        log_.debug("application reported",
                   {{"application", *key}, {"took_ms", std::llround(took.count() * 1000)}});
      }
      queue_.done(*key);
      continue;
    }
    give_back(*key, std::move(dirty));
    const auto delay = backoff_of(*key).next(outcome.error().retry_after);
    log_failure(*key, outcome.error(), delay);
    queue_.retry(*key, delay);
  }
}

Task<Reporter::Outcome> Reporter::report(const std::string& key, Dirty& dirty) {
  if (!dirty.tombstone.empty()) {
    const auto gone = co_await report_gone(key, dirty.tombstone);
    if (!gone) co_return std::unexpected(gone.error());
    dirty.tombstone.clear();
  }
  if (!dirty.live) co_return Outcome();
  co_return co_await report_live(key, dirty.text);
}

Task<Reporter::Outcome> Reporter::report_live(const std::string& key, std::string text) {
  const auto slash = key.find('/');
  auto gathered = co_await gatherer_.gather(
      {.ns = key.substr(0, slash), .name = key.substr(slash + 1)}, std::move(text));
  if (!gathered) {
    // Deleted meanwhile: the informer will say so.
    if (gathered.error().code == ErrorCode::not_found) co_return Outcome();
    count_error("argocd", gathered.error());
    co_return std::unexpected(gathered.error());
  }
  const Error gap{.code = ErrorCode::unavailable, .message = gathered->gap};
  if (!gap.message.empty() && backoff_of(key).attempts() < options_.max_attempts) {
    count_error("argocd", gap);
    co_return std::unexpected(gap);  // it may be there in a moment; do not report half of it yet
  }

  const auto report = Report::read(std::move(gathered->material), std::move(gathered->settings));
  if (!report) {
    count_error("argocd", report.error());
    co_return std::unexpected(lasting(key, report.error()));
  }
  const auto now = wall_now();
  const auto due = acknowledged_.diff(
      key, report->uid(), report->application_digest(),
      report->resources_known() ? std::optional(report->resources()) : std::nullopt);
  if (due.application) {
    const auto& digest = report->application_digest();
    const auto posted = co_await deliver("application", report->application_event(now),
                                         event_id(*report, "application", to_hex(digest, 4)));
    if (!posted) co_return std::unexpected(posted.error());
    acknowledged_.commit_application(key, report->uid(), digest);
  }
  const auto posted = co_await post_resources(key, *report, due.changed, due.gone, now);
  if (!posted) co_return std::unexpected(posted.error());
  if (!gap.message.empty()) co_return std::unexpected(lasting(key, gap));
  co_return Outcome();
}

Task<Reporter::Outcome> Reporter::report_gone(const std::string& key, std::string text) {
  auto gathered = co_await gatherer_.gather_gone(std::move(text));
  if (!gathered) {
    if (gathered.error().code != ErrorCode::invalid_data) {
      co_return std::unexpected(gathered.error());
    }
    // Its last text is of no use; its name is.
    const auto slash = key.find('/');
    gathered = co_await gatherer_.gather_gone(
        application_stub({.ns = key.substr(0, slash), .name = key.substr(slash + 1)}, "", ""));
    if (!gathered) co_return std::unexpected(gathered.error());
  }
  const auto report = Report::read(std::move(gathered->material), std::move(gathered->settings));
  if (!report) co_return std::unexpected(report.error());
  const auto now = wall_now();
  const auto posted = co_await deliver("application_gone", report->application_event(now),
                                       event_id(*report, "application", "gone"));
  if (!posted) co_return std::unexpected(posted.error());
  const auto resources = co_await post_resources(
      key, *report, {}, acknowledged_.resources_of(key, report->uid()), now);
  if (!resources) co_return std::unexpected(resources.error());
  acknowledged_.forget(key, report->uid());
  co_return Outcome();
}

Task<Reporter::Outcome> Reporter::post_resources(const std::string& key, const Report& report,
                                                 std::vector<std::size_t> changed,
                                                 std::vector<ResourceId> gone, WallTime now) {
  const auto count = changed.size() + gone.size();
  if (count == 0) co_return Outcome();
  std::size_t next = 0;
  Outcome outcome;
  // Each takes the next event until none is left. A failure does not hold up the others.
  const auto post_some = [&]() -> Task<> {
    while (next < count) {
      const auto index = next++;
      Outcome posted;
      if (index < changed.size()) {
        const auto& resource = report.resources()[changed[index]];
        posted =
            co_await deliver("resource", report.resource_event(changed[index], now),
                             event_id(report, part_of(resource.id), to_hex(resource.digest, 4)));
        if (posted) {
          acknowledged_.commit_resource(key, report.uid(), resource.id, resource.digest);
        }
      } else {
        const auto& id = gone[index - changed.size()];
        posted = co_await deliver("resource_gone", report.gone_event(id, now),
                                  event_id(report, part_of(id), "gone"));
        if (posted) acknowledged_.forget_resource(key, report.uid(), id);
      }
      if (!posted && outcome) outcome = std::unexpected(posted.error());
    }
  };
  using Poster = decltype(asio::co_spawn(executor_, post_some, asio::deferred));
  std::vector<Poster> posters;
  for (std::size_t i = 0; i < std::min(count, options_.resource_workers); ++i) {
    posters.push_back(asio::co_spawn(executor_, post_some, asio::deferred));
  }
  auto group = asio::experimental::make_parallel_group(std::move(posters));
  auto [order, failures] = co_await group.async_wait(asio::experimental::wait_for_all(), use_task);
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  co_return outcome;
}

Task<Reporter::Outcome> Reporter::deliver(std::string_view part, std::string body,
                                          std::string event_id) {
  const auto count = [&](const char* result) {
    metrics_
        .counter("gitops_event_reporter_reports_total", "Events posted to the control plane",
                 {{"part", std::string(part)}, {"result", result}})
        .Increment();
  };
  Backoff backoff(options_.post_backoff, random_seed());
  while (true) {
    auto posted = co_await platform_.post_event(body, event_id, deadline_after(kPostTimeout));
    if (posted) {
      count("acknowledged");
      if (!platform_trouble_.empty()) {
        log_.info("the control plane takes events again");
        platform_trouble_.clear();
        bring_forward();
      }
      last_acknowledgement_ = wall_now();
      log_.debug("event acknowledged", {{"part", part}, {"event_id", event_id}});
      co_return Outcome();
    }
    count("failed");
    const auto& error = posted.error();
    platform_trouble_ = error.message;
    count_error("platform", error);
    if (const auto verdict = repeats_.check(error.message, Clock::now()); verdict.pass) {
      log_.warning("an event was not taken", {{"code", to_string(error.code)},
                                              {"reason", error.message},
                                              {"attempt", backoff.attempts() + 1},
                                              {"suppressed", verdict.suppressed}});
    }
    bool again = worth_another_attempt(error);
    if (error.code == ErrorCode::unauthenticated) again = co_await platform_token_.refused();
    if (!again || backoff.attempts() + 1 >= options_.max_attempts) {
      co_return std::unexpected(error);
    }
    co_await sleep_for(backoff.next(error.retry_after));
  }
}

Backoff& Reporter::backoff_of(const std::string& key) {
  return backoffs_.try_emplace(key, options_.key_backoff, random_seed()).first->second;
}

Error Reporter::lasting(const std::string& key, Error error) {
  if (backoff_of(key).attempts() >= options_.max_attempts) error.retry_after = options_.gap_retry;
  return error;
}

void Reporter::bring_forward() {
  for (const auto& [key, dirty] : dirty_) {
    if (!queue_.add(key)) overdue_.insert(key);
  }
}

// -- what people see --

void Reporter::count_error(std::string_view peer, const Error& error) {
  metrics_
      .counter("gitops_event_reporter_errors_total", "Failed attempts by peer and kind",
               {{"peer", std::string(peer)}, {"code", std::string(to_string(error.code))}})
      .Increment();
  last_errors_[std::string(peer)] = format_rfc3339(wall_now()) + " " + error.message;
}

void Reporter::log_failure(std::string_view key, const Error& error, Clock::duration delay) {
  const auto verdict = repeats_.check(std::string("report ") + error.message, Clock::now());
  if (!verdict.pass) return;
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(delay);
  log_.warning("a report failed and will be tried again", {{"application", key},
                                                           {"code", to_string(error.code)},
                                                           {"reason", error.message},
                                                           {"retry_in_ms", millis.count()},
                                                           {"suppressed", verdict.suppressed}});
}

Clock::duration Reporter::oldest_dirty(Clock::time_point now) const {
  auto oldest = now;
  for (const auto& [key, dirty] : dirty_) oldest = std::min(oldest, dirty.since);
  for (const auto& [key, since] : in_work_since_) {
    if (since != Clock::time_point{}) oldest = std::min(oldest, since);
  }
  return now - oldest;
}

Task<> Reporter::tick() {
  while (true) {
    refill();
    const bool argocd_well = gatherer_.argocd_trouble().empty();
    if (argocd_well && !argocd_well_) {
      log_.info("Argo CD answers again");
      bring_forward();
    }
    argocd_well_ = argocd_well;
    give_memory_back();
    queue_size_.Set(static_cast<double>(queue_.size()));
    overdue_size_.Set(static_cast<double>(overdue_.size()));
    applications_.Set(static_cast<double>(informer_.size()));
    oldest_dirty_.Set(std::chrono::duration<double>(oldest_dirty(Clock::now())).count());
    co_await sleep_for(kTick);
  }
}

// The texts of many reports leave holes between the small things that stay.
void Reporter::give_memory_back() {
  constexpr std::size_t kMany = 100;
  if (reported_ < kMany || queue_.size() + queue_.in_work() > 0) return;
  reported_ = 0;
  malloc_trim(0);
}

std::vector<ReadyCheck> Reporter::ready_checks() {
  return {{"applications",
           [this] {
             if (!informer_.trouble().empty()) return informer_.trouble();
             return informer_.has_synced() ? std::string{} : std::string("not listed yet");
           }},
          {"argocd", [this] { return gatherer_.argocd_trouble(); }},
          {"platform", [this] {
             return platform_token_.trouble().empty() ? platform_trouble_
                                                      : platform_token_.trouble();
           }}};
}

std::string Reporter::status() const {
  const auto line = [](std::string_view name, std::string_view value) {
    return std::string(name) + ": " + std::string(value) + "\n";
  };
  const auto age =
      std::chrono::duration_cast<std::chrono::milliseconds>(oldest_dirty(Clock::now()));
  std::string out =
      line("shard", options_.shard.replicas <= 1 ? "all applications"
                                                 : std::to_string(options_.shard.ordinal) + " of " +
                                                       std::to_string(options_.shard.replicas)) +
      line("applications",
           std::to_string(informer_.size()) + (informer_.has_synced() ? "" : " (not listed yet)")) +
      line("queue", std::to_string(queue_.size()) + " of " + std::to_string(queue_.capacity()) +
                        " waiting, " + std::to_string(queue_.in_work()) + " in work, " +
                        std::to_string(overdue_.size()) + " overdue") +
      line("oldest unacknowledged change", format_duration(age)) +
      line("last acknowledgement",
           last_acknowledgement_ ? format_rfc3339(*last_acknowledgement_) : "never");
  if (!informer_.trouble().empty()) out += line("kubernetes", informer_.trouble());
  for (const auto& [peer, error] : last_errors_) out += line("last error of " + peer, error);
  return out;
}

}  // namespace gitops::reporter
