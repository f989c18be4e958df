#include "event-reporter/report/reporter.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/core/json_text.hpp"
#include "event-reporter/event/manifest.hpp"
#include "event-reporter/watch/name_pattern.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kReadTimeout = std::chrono::seconds(30);
// Resource trees that a sweep reads at the same time. One after the other, the reads of 10,000
// trees take longer than its period.
constexpr std::size_t kSweptTogether = 4;

// The fields of an Application that the informer keeps.
enum Field : std::size_t {
  sync_status,
  sync_revision,
  sync_revisions,
  health_status,
  operation_phase,
  operation_start,
  project,
  controller_namespace,
  tracking_id,
  all_labels,
};
k8s::FieldSet fields() {
  return k8s::FieldSet(
      {"status.sync.status", "status.sync.revision", "status.sync.revisions",
       "status.health.status", "status.operationState.phase", "status.operationState.startedAt",
       "spec.project", "status.controllerNamespace",
       R"(metadata.annotations.argocd\.argoproj\.io/tracking-id)", "metadata.labels"});
}

// Returns the name of the Application that may manage this one, by the mark that counts with these
// settings. The read of the application decides whether it is one of this Argo CD.
std::string mark_of_parent(const k8s::Record& record, const TrackingSettings& settings) {
  if (settings.method == "label") {
    const auto labels = record.field(all_labels);
    return labels ? member_string(*labels, settings.instance_label_key) : std::string();
  }
  const auto id = record.field(tracking_id).value_or("");
  return id.contains(':') ? std::string(id.substr(0, id.find(':'))) : std::string();
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

}  // namespace

Reporter::Reporter(const Executor& executor, k8s::Client& kubernetes, Gatherer& gatherer,
                   Ledger& ledger, Delivery& delivery, Options options, Metrics& metrics)
    : kubernetes_(kubernetes),
      gatherer_(gatherer),
      ledger_(ledger),
      delivery_(delivery),
      options_(std::move(options)),
      queue_(executor, delivery, options_.queue, metrics),
      lag_(executor,
           [this] {
             return k8s::newest_version(kubernetes_, k8s::resources::kApplications,
                                        watched_namespace(), deadline_after(kReadTimeout));
           }),
      objects_(lag_),
      changes_(executor, ledger, queue_, objects_, options_.changes, metrics),
      reconcile_(changes_, queue_, options_.reconcile, metrics),
      application_reporter_(executor, kubernetes, gatherer, ledger, changes_, delivery,
                            options_.application, metrics),
      informer_(executor, kubernetes,
                {.resource = k8s::resources::kApplications,
                 .ns = watched_namespace(),
                 .fields = fields(),
                 .keep = [this](std::string_view ns, std::string_view) { return watches(ns); },
                 .reflector = options_.reflector},
                metrics, "event_reporter"),
      subscription_(informer_.subscribe([this](const k8s::Change& change) { on_change(change); })),
      undelivered_(application_reporter_.newest_states(), changes_,
                   [this](const std::string& key) {
                     const auto* record = informer_.find(application_key(key));
                     return record == nullptr ? std::string_view() : record->resource_version();
                   }),
      applications_(metrics.gauge("gitops_event_reporter_applications",
                                  "Applications of the shards that this process reports")),
      sweeps_(metrics.counter("gitops_event_reporter_tree_changes_total",
                              "Resource trees found changed without a write to the Application")) {}

void Reporter::start(TaskGroup& group) {
  delivery_.on_recovery([this] { changes_.retry_refused(); });
  gatherer_.start(group);
  informer_.start(group);
  changes_.start(group);
  group.spawn("watch-lag", [this] { return lag_.run(); });
  group.spawn("find-deleted", [this] { return find_deleted(); });
  for (std::size_t share = 0; share < kSweptTogether; ++share) {
    group.spawn("sweep", [this, share] { return sweep(share); });
  }
  group.spawn("tick", [this] { return tick(); });
  group.spawn("reconcile", [this] { return reconcile_.run(); });
  queue_.start(group, changes_, application_reporter_);
}

// Returns the watched namespace; empty: all namespaces.
std::string Reporter::watched_namespace() const {
  return options_.application_namespaces.empty() ? options_.own_namespace : std::string();
}

bool Reporter::watches(std::string_view ns) const {
  return ns == options_.own_namespace || matches_any(ns, options_.application_namespaces);
}

// Returns the Argo CD of an Application. Several Argo CDs may share a cluster; each one writes its
// namespace into its Applications when it first reconciles them. Those in its own namespace are its
// own.
Reporter::Owner Reporter::owner_of(const k8s::Record& record) const {
  const auto controller = record.field(controller_namespace).value_or("");
  if (controller == options_.own_namespace) return Owner::ours;
  if (!controller.empty()) return Owner::other;
  return record.ns() == options_.own_namespace ? Owner::ours : Owner::unknown;
}

// -- changes --

void Reporter::on_change(const k8s::Change& change) {
  if (informer_.epoch() != epoch_) start_epoch();
  const auto& now = *change.now;
  const auto key = now.key().to_string();
  const bool deleted = change.type == k8s::Change::Type::deleted;
  index_children();
  if (deleted || tracking_) {
    children_.set(key, deleted ? std::string() : mark_of_parent(now, *tracking_));
  }
  if (!deleted && is_ours(now)) {
    const bool is_new = !changes_.sees(key) && !changes_.knows(key, now.uid());
    const bool outdated = lag_.may_be_outdated(changes_.shard_of_key(key), now.resource_version());
    changes_.changed(
        key, now.uid(), change_digest(change.text), change.text, milestone_of(now),
        outdated ? ChangeTracker::Report::as_read : ChangeTracker::Report::as_delivered);
    if (is_new && informer_.has_synced()) report_children(now.key());
    if (is_new && !informer_.has_synced()) new_.push_back(now.key());
    return;
  }
  const bool taken_back =
      owner_of(now) == Owner::other && (changes_.sees(key) || ledger_.known().contains(key));
  if (!deleted && !taken_back) return;
  changes_.deleted(key, change.text.empty()
                            ? application_stub(now.key(), now.uid(), now.resource_version())
                            : std::string(change.text));
  report_children(now.key());
}

// Reports the children of a parent that was created or deleted, which makes them resources of it or
// root applications.
void Reporter::report_children(const k8s::ObjectKey& parent) {
  parents_.push_back(parent);
  report_due_children();
}

// Makes the children of parents due, as soon as Argo CD's settings tell how a child names its parent.
void Reporter::report_due_children() {
  if (!index_children()) return;
  for (const auto& parent : std::exchange(parents_, {})) {
    for (const auto& child : children_of(parent)) {
      const auto* record = informer_.find(application_key(child));
      if (record != nullptr && is_ours(*record)) changes_.compare_again(child);
    }
  }
  if (!informer_.has_synced()) return;
  for (const auto& parent : std::exchange(new_, {})) {
    for (const auto& child : children_of(parent)) {
      // The report of a child that is due sees the parent, which was created before.
      if (!queue_.is_due(child)) changes_.compare_again(child);
    }
  }
}

// Indexes all applications when the settings that name their parents are new. Returns false while they
// are not known.
bool Reporter::index_children() {
  const auto* settings = gatherer_.tracking();
  if (settings == nullptr) return false;
  if (tracking_ && tracking_->method == settings->method &&
      tracking_->instance_label_key == settings->instance_label_key) {
    return true;
  }
  tracking_ = *settings;
  informer_.for_each([this](const k8s::Record& record) {
    children_.set(record.key().to_string(), mark_of_parent(record, *tracking_));
  });
  return true;
}

std::set<std::string> Reporter::children_of(const k8s::ObjectKey& parent) const {
  auto children = children_.of(parent.name);
  children.merge(children_.of(parent.ns + "_" + parent.name));
  return children;
}

// Starts a new epoch: the cluster was restored from a backup. Reports in flight have states from
// before, so they begin again.
void Reporter::start_epoch() {
  epoch_ = informer_.epoch();
  const auto all = [](std::string_view) { return true; };
  queue_.cancel(all);
  lag_.restored();
  application_reporter_.start_epoch();
  changes_.report_all(all);
}

// Reports, after the first complete list, the children of applications that were created while the
// process was down, and finds the deleted applications, which the ledger has and the list does not.
Task<> Reporter::find_deleted() {
  co_await informer_.wait_synced(kNever);
  report_due_children();
  const auto missing = changes_.missing([this](std::string_view key) {
    return informer_.find(application_key(std::string(key))) == nullptr;
  });
  co_await check_deletions(kubernetes_, missing,
                           {.resource = k8s::resources::kApplications,
                            .object = application_key,
                            .pauses = options_.queue.backoff,
                            .is_watched =
                                [this](const std::string& key) {
                                  return informer_.find(application_key(key)) != nullptr;
                                }},
                           [this](const std::string& key, const std::string& uid) {
                             const auto object = application_key(key);
                             // Its successor was created during the check; its report covers both.
                             const auto* now = informer_.find(object);
                             if (now != nullptr && is_ours(*now)) return;
                             changes_.missed(key, uid, application_stub(object, uid, ""));
                             report_children(object);
                           });
}

// -- changes without a watch event --

// Reads the trees of one share of the applications in turns.
Task<> Reporter::sweep(std::size_t share) {
  const std::hash<std::string> hash;
  while (true) {
    co_await informer_.wait_synced(kNever);
    std::vector<std::pair<std::string, std::string>> round;
    informer_.for_each([&](const k8s::Record& record) {
      auto key = record.key().to_string();
      if (hash(key) % kSweptTogether == share && changes_.owns(key) && is_ours(record)) {
        round.emplace_back(std::move(key), record.field(project).value_or(""));
      }
    });
    const Clock::duration period = options_.sweep;
    const auto pace =
        period / static_cast<Clock::duration::rep>(std::max<std::size_t>(round.size(), 1));
    if (round.empty()) co_await sleep_for(pace);
    Clock::time_point due = Clock::now();
    for (const auto& [key, project] : round) {
      due = std::max<Clock::time_point>(due + pace, Clock::now());
      co_await sleep_until(due);
      co_await check_tree(key, project);
    }
  }
}

Task<> Reporter::check_tree(std::string key, std::string project) {
  if (!changes_.owns(key) || queue_.is_due(key) || !gatherer_.argocd_error().empty()) co_return;
  const auto changed = co_await application_reporter_.tree_changed(key, std::move(project));
  if (!changed || !*changed || !changes_.owns(key) || queue_.is_due(key)) co_return;
  if (informer_.find(application_key(key)) == nullptr) co_return;
  sweeps_.Increment();
  changes_.compare_again(key);
}

Task<> Reporter::tick() {
  while (true) {
    const bool argocd_well = gatherer_.argocd_error().empty();
    if (argocd_well && !argocd_well_) {
      if (argocd_answered_) log_.info("Argo CD answers again");
      argocd_answered_ = true;
      queue_.bring_forward();
    }
    argocd_well_ = argocd_well;
    report_due_children();
    undelivered_.look(Clock::now());
    if (queue_.heartbeat_due()) changes_.send_heartbeat();
    applications_.Set(static_cast<double>(changes_.owned()));
    co_await sleep_for(kTick);
  }
}

std::optional<Resync::Listed> Reporter::listed() const {
  if (!informer_.has_synced()) return std::nullopt;
  return Resync::Listed{};
}

// -- for people --

std::vector<ReadyCheck> Reporter::ready_checks() {
  return {{"applications",
           [this] {
             if (!informer_.last_error().empty()) return informer_.last_error();
             return informer_.has_synced() ? std::string{} : std::string("not listed yet");
           }},
          {"argocd", [this] { return gatherer_.argocd_error(); }},
          {"platform", [this] { return delivery_.last_error(); }}};
}

StatusReport Reporter::status() const {
  StatusEntry applications{.name = "applications"};
  if (!informer_.has_synced()) {
    applications.state = StatusState::pending;
    applications.message = "not listed yet";
  }
  applications.add_count("count", changes_.owned(), "");
  const auto failed = [](std::string name, const std::string& error) {
    return error.empty() ? StatusReport() : StatusReport{status_entry(std::move(name), error)};
  };
  return joined({StatusReport{std::move(applications)}, queue_.status(),
                 failed("kubernetes", informer_.last_error()),
                 status_of_take_overs(changes_.awaiting_take_over() + lag_.unknown()),
                 failed("argocd", gatherer_.argocd_error())});
}

std::vector<k8s::ObjectKey> Reporter::applications() const {
  std::vector<k8s::ObjectKey> out;
  informer_.for_each([&](const k8s::Record& record) {
    if (is_ours(record)) out.push_back(record.key());
  });
  return out;
}

}  // namespace gitops::reporter
