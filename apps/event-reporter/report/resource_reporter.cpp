#include "event-reporter/report/resource_reporter.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "event-reporter/report/event_id.hpp"
#include "event-reporter/report/report_work.hpp"
#include "event-reporter/watch/name_pattern.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kReadTimeout = std::chrono::seconds(10);
constexpr auto kVersionTimeout = std::chrono::seconds(30);
// Pause after a failed read from a managed cluster.
constexpr auto kReadPause = std::chrono::seconds(5);
// Maximum number of clusters, or namespaces of clusters, with a label of their own in the metrics.
constexpr std::size_t kMaxLabels = 100;

k8s::WatchedKind watched(const ResourceKind& kind, std::string ns) {
  return {
      .name = kind.name, .resource = kind.resource, .fields = fields_of(kind), .ns = std::move(ns)};
}

// Returns the cluster's name in events: empty for the runtime's own cluster.
std::string_view server_of(const ResourceKey& id) {
  return id.cluster == kOwnCluster ? std::string_view() : std::string_view(id.cluster);
}

// The events of one object, from its text or its tombstone. Both outlive this.
class ResourceEventSource final : public EventSource {
 public:
  ResourceEventSource(const ResourceKey& id, const std::string& text) : id_(id), text_(text) {}

  [[nodiscard]] Delivery::Event make(const PlannedEvent& event, std::string_view uid,
                                     Sequence sequence) const override {
    const auto& kind = *find_kind(id_.kind);
    const auto part = part_of({.group = kind.resource.group,
                               .version = kind.resource.version,
                               .kind = kind.resource.kind,
                               .ns = id_.object.ns,
                               .name = id_.object.name});
    return {.part = kind.name + (event.is_gone() ? "_gone" : ""),
            .subject = id_.to_string(),
            .id = event_id(uid, part, sequence, event.content),
            .sequence = sequence,
            .body = event.is_gone()
                        ? deleted_resource_event(text_, kind.resource, server_of(id_), wall_now())
                        : resource_event(text_, kind.resource, server_of(id_)),
            .reduce = reduced_resource_event};
  }

 private:
  const ResourceKey& id_;
  const std::string& text_;
};

}  // namespace

// A watched cluster. Shared with its task and with reads in flight.
struct ResourceReporter::Cluster {
  Cluster(const Executor& executor, std::string the_id, std::string the_name)
      : id(std::move(the_id)),
        name(std::move(the_name)),
        tasks(executor, [this](const std::string& task, const std::string& what) {
          failure = task + ": " + what;
          tasks.cancel();
        }) {}

  [[nodiscard]] bool is_own() const { return id == kOwnCluster; }
  // Returns the error of the first kind that has one.
  [[nodiscard]] std::string last_error() const {
    for (const auto& watch : watches) {
      if (auto text = watch->last_error(); !text.empty()) return watch->what().name + ": " + text;
    }
    return {};
  }

  std::string id;    // ResourceKey::cluster
  std::string name;  // shown to people
  // Returns the newest version of the kind in its watched namespaces.
  [[nodiscard]] Task<Result<std::string>> newest_version(std::size_t index) const {
    const auto& watch = *watches[index];
    // The watch of a kind that is not served yet will begin with a list.
    if (watch.is_missing()) co_return Result<std::string>("0");
    co_return co_await k8s::newest_version(*client, watch.what().resource, watch.what().ns,
                                           deadline_after(kVersionTimeout));
  }

  std::shared_ptr<k8s::Client> client;
  std::vector<std::unique_ptr<k8s::KindWatch>> watches;
  std::deque<WatchLag> lags;  // one for each watch
  std::string failure;
  std::size_t reads = 0;  // in flight
  Clock::time_point next_read{};
  TaskGroup tasks;
};

ResourceReporter::ResourceReporter(const Executor& executor, k8s::Client& kubernetes,
                                   Ledger& ledger, Delivery& delivery, Options options,
                                   Metrics& metrics)
    : executor_(executor),
      kubernetes_(kubernetes),
      ledger_(ledger),
      delivery_(delivery),
      options_(std::move(options)),
      metrics_(metrics),
      queue_(executor, delivery, options_.queue, metrics),
      changes_(executor, ledger, queue_, *this, options_.changes, metrics),
      runner_(executor, ledger, changes_, delivery, 1),
      reconcile_(changes_, queue_, options_.reconcile, metrics),
      undelivered_(newest_, changes_,
                   [this](const std::string& key) { return watched_version(key); }),
      resources_(metrics.gauge("gitops_event_reporter_resources",
                               "Objects of the shards that this process reports")),
      clusters_size_(metrics.gauge("gitops_event_reporter_managed_clusters",
                                   "Managed clusters that are watched")),
      failing_clusters_(metrics.gauge("gitops_event_reporter_failing_clusters",
                                      "Managed clusters with a failing watch")),
      unreadable_(
          metrics.counter("gitops_event_reporter_unreadable_total",
                          "States of objects that could not be read and were not reported")) {}

void ResourceReporter::start(TaskGroup& group) {
  delivery_.on_recovery([this] { changes_.retry_refused(); });
  group_ = &group;
  changes_.start(group);
  queue_.start(group, changes_, *this);
  group.spawn("tick", [this] { return tick(); });
  group.spawn("reconcile", [this] { return reconcile_.run(); });
  watch(std::string(kOwnCluster), std::string(kOwnCluster),
        std::shared_ptr<k8s::Client>(std::shared_ptr<void>(), &kubernetes_),
        kinds_of_own_cluster());
}

// -- watches --

std::vector<k8s::WatchedKind> ResourceReporter::kinds_of_own_cluster() const {
  std::vector<k8s::WatchedKind> out;
  for (const auto* kind : options_.kinds) {
    auto what = watched(*kind, {});
    if (options_.only_own_namespace) {
      what.ns = options_.own_namespace;
    } else if (kind->home == ResourceKind::Home::runtime) {
      if (options_.runtime_namespaces.empty()) {
        what.ns = options_.own_namespace;
      } else {
        what.keep_namespace = [this](std::string_view ns) {
          return ns == options_.own_namespace || matches_any(ns, options_.runtime_namespaces);
        };
      }
    }
    out.push_back(std::move(what));
  }
  return out;
}

std::vector<k8s::WatchedKind> ResourceReporter::kinds_of(const ManagedCluster& managed) const {
  std::vector<k8s::WatchedKind> out;
  for (const auto* kind : options_.kinds) {
    if (kind->home != ResourceKind::Home::everywhere) continue;
    for (const auto& ns : managed.namespaces) out.push_back(watched(*kind, ns));
    if (managed.namespaces.empty()) out.push_back(watched(*kind, {}));
  }
  return out;
}

// Each watch of a kind needs a label of its own; those of one cluster differ in the namespace.
std::string ResourceReporter::metric_label(const std::string& cluster, const std::string& ns) {
  const auto name = ns.empty() || cluster == kOwnCluster ? cluster : cluster + "/" + ns;
  if (!metric_labels_.contains(name) && metric_labels_.size() >= kMaxLabels) return "other";
  metric_labels_.insert(name);
  return name;
}

void ResourceReporter::watch(std::string id, const std::string& name,
                             std::shared_ptr<k8s::Client> client,
                             std::vector<k8s::WatchedKind> kinds) {
  const auto cluster = std::make_shared<Cluster>(executor_, id, name);
  cluster->client = std::move(client);
  const std::weak_ptr<Cluster> weak = cluster;
  for (auto& what : kinds) {
    const auto* kind = find_kind(what.name);
    const auto index = cluster->watches.size();
    auto* lag = &cluster->lags.emplace_back(
        executor_, [cluster = cluster.get(), index] { return cluster->newest_version(index); });
    k8s::KindWatch::Callbacks callbacks{
        .changed = [this, cluster = cluster.get(), kind,
                    lag](const k8s::Change& change) { on_change(*cluster, *kind, *lag, change); },
        .listed = [this, weak](
                      const k8s::KindWatch& listed) { return find_deleted(weak.lock(), listed); },
        .restored =
            [this, cluster = cluster.get(), kind, lag] {
              lag->restored();
              start_epoch(*cluster, *kind);
            }};
    auto label = metric_label(name, what.ns);
    cluster->watches.push_back(std::make_unique<k8s::KindWatch>(
        executor_, *cluster->client, std::move(what), options_.watch, std::move(callbacks),
        metrics_, "event_reporter", std::move(label)));
  }
  clusters_[std::move(id)] = cluster;
  group_->spawn("cluster " + name, [this, cluster] { return run(cluster); });
}

// Watches a cluster until it is no longer watched.
Task<> ResourceReporter::run(std::shared_ptr<Cluster> cluster) {
  for (const auto& watch : cluster->watches) {
    cluster->tasks.spawn(watch->what().name, [watch = watch.get()] { return watch->run(); });
  }
  for (auto& lag : cluster->lags) {
    cluster->tasks.spawn("watch lag", [&lag] { return lag.run(); });
  }
  co_await cluster->tasks.join();
  if (!cluster->failure.empty()) throw std::runtime_error(cluster->failure);
}

void ResourceReporter::watch_cluster(ManagedCluster managed) {
  unwatch_cluster(managed.server);
  log_.info("watching a managed cluster", {{"cluster", managed.name}, {"server", managed.server}});
  auto kinds = kinds_of(managed);
  watch(managed.server, managed.name, std::move(managed.client), std::move(kinds));
}

void ResourceReporter::unwatch_cluster(const std::string& server) {
  const auto found = clusters_.find(server);
  if (found == clusters_.end()) return;
  found->second->tasks.cancel();
  clusters_.erase(found);
}

void ResourceReporter::forget_cluster(const std::string& server) {
  unwatch_cluster(server);
  const auto is_there = [&server](std::string_view key) {
    return parse_resource_key(key).cluster == server;
  };
  const auto objects = changes_.forget(is_there);
  // A cluster that is built again has the URL of the one before, and its resourceVersions begin again.
  newest_.forget_all(is_there);
  log_.info("a cluster is not managed any more: its objects are forgotten",
            {{"server", server}, {"objects", objects}});
}

void ResourceReporter::forget_clusters_but(const std::set<std::string>& servers) {
  const auto is_elsewhere = [&servers](std::string_view key) {
    const auto cluster = parse_resource_key(key).cluster;
    return cluster != kOwnCluster && !servers.contains(cluster);
  };
  const auto objects = changes_.forget(is_elsewhere);
  newest_.forget_all(is_elsewhere);
  if (objects == 0) return;
  log_.info("clusters are not managed any more: their objects are forgotten",
            {{"objects", objects}});
}

// -- changes --

std::string ResourceReporter::tombstone(const std::string& key, const std::string& uid) const {
  return resource_stub(parse_resource_key(key).object, uid);
}

// A managed cluster may be away for days, or its Secret unusable.
bool ResourceReporter::is_readable(const std::string& key) const {
  const auto id = parse_resource_key(key);
  const auto cluster = clusters_.find(id.cluster);
  if (cluster == clusters_.end()) return false;
  if (cluster->second->is_own()) return true;
  return std::ranges::any_of(cluster->second->watches, [&id](const auto& watch) {
    return watch->what().name == id.kind && watch->what().covers(id.object.ns) &&
           watch->last_error().empty();
  });
}

void ResourceReporter::taken_over(std::uint32_t shard) {
  for (const auto& [id, cluster] : clusters_) {
    for (auto& lag : cluster->lags) lag.taken_over(shard);
  }
}

void ResourceReporter::on_change(const Cluster& cluster, const ResourceKind& kind,
                                 const WatchLag& lag, const k8s::Change& change) {
  const auto& now = *change.now;
  const auto key =
      ResourceKey{.cluster = cluster.id, .kind = kind.name, .object = now.key()}.to_string();
  if (change.type == k8s::Change::Type::deleted) {
    changes_.deleted(
        key, change.text.empty() ? resource_stub(now.key(), now.uid()) : std::string(change.text));
    return;
  }
  // A reported object stays reported until it is deleted, even when it loses its owner.
  if (!options_.any_owner && !has_owner(kind, now) && !changes_.sees(key) && !changes_.knows(key)) {
    return;
  }
  const bool outdated = lag.may_be_outdated(changes_.shard_of_key(key), now.resource_version());
  changes_.changed(key, now.uid(), object_digest(change.text), change.text, milestone_of(kind, now),
                   outdated ? ChangeTracker::Report::as_read : ChangeTracker::Report::as_delivered);
}

// Starts a new epoch: the cluster was restored from a backup. Reports in flight have states from
// before, so they begin again.
void ResourceReporter::start_epoch(const Cluster& cluster, const ResourceKind& kind) {
  const auto which = [&](std::string_view key) {
    const auto id = parse_resource_key(key);
    return id.cluster == cluster.id && id.kind == kind.name;
  };
  queue_.cancel(which);
  newest_.forget_all(which);
  changes_.report_all(which);
}

// Finds the objects that were deleted without a watch event: the ledger has them, the first complete
// list does not. Objects whose first event still waits have no entry; a watch before this one delivered
// them, and they are forgotten.
Task<> ResourceReporter::find_deleted(std::shared_ptr<Cluster> cluster,
                                      const k8s::KindWatch& watch) {
  const auto is_missing = [&](std::string_view key) {
    const auto id = parse_resource_key(key);
    return id.cluster == cluster->id && id.kind == watch.what().name &&
           watch.what().covers(id.object.ns) && watch.find(id.object) == nullptr;
  };
  auto missing = changes_.missing(is_missing);
  for (auto& unreported : changes_.owned_keys([&](std::string_view key) {
         return is_missing(key) && !changes_.knows(std::string(key));
       })) {
    missing.emplace_back(std::move(unreported), std::string());
  }
  const auto object = [](std::string_view key) { return parse_resource_key(key).object; };
  co_await check_deletions(
      *cluster->client, std::move(missing),
      {.resource = watch.what().resource,
       .object = object,
       .pauses = options_.queue.backoff,
       .is_watched = [&](const std::string& key) { return watch.find(object(key)) != nullptr; }},
      [&](const std::string& key, const std::string& uid) {
        // Its successor was created during the check; its report covers both.
        if (watch.find(object(key)) != nullptr) return;
        const auto known = ledger_.known().find(key);
        if (uid.empty() && known == ledger_.known().end()) {
          changes_.forget([&key](std::string_view other) { return other == key; });
          return;
        }
        const auto gone = uid.empty() ? known->second.uid : uid;
        changes_.missed(key, gone, resource_stub(object(key), gone));
      });
}

// -- workers --

Task<Result<void>> ResourceReporter::report_predecessor(Grant grant, std::string key,
                                                        std::string uid) {
  const auto id = parse_resource_key(key);
  co_return co_await post_gone(grant, id, inventory_row(key, uid), resource_stub(id.object, uid));
}

// Reports the deletion of a predecessor that was deleted without a watch event, when its successor
// was deleted before its first report, or has a successor itself.
Task<Result<void>> ResourceReporter::report_missed(Grant grant, std::string key,
                                                   const DirtyWork& work) {
  if (work.live && !grant.owner && !work.states.empty()) {
    // Another replica reports the object now.
    const auto& text = work.states.back().text;
    if (const auto facts = read_resource(text)) changes_.seen_without_shard(key, facts->uid, text);
  }
  if (work.live || !ledger_.known().contains(key)) co_return Result<void>();
  const auto id = parse_resource_key(key);
  const auto text = co_await read(id);
  if (!text && text.error().code != ErrorCode::not_found) co_return std::unexpected(text.error());
  const auto known = ledger_.known().find(key);
  if (known == ledger_.known().end()) co_return Result<void>();
  const auto uid = known->second.uid;
  if (text) {
    // The object itself is reported when the watch delivers it.
    const auto facts = read_resource(*text);
    if (!facts || facts->uid.empty() || facts->uid == uid) co_return Result<void>();
  }
  co_return co_await post_gone(grant, id, key, resource_stub(id.object, uid));
}

Task<Result<bool>> ResourceReporter::report_state(Grant grant, const std::string& key,
                                                  const DirtyWork& work,
                                                  const ReportAttempt& attempt) {
  const auto id = parse_resource_key(key);
  bool from_server = work.states.empty();
  if (!from_server && newest_.uid(key) != nullptr) {
    const auto facts = read_resource(work.states.front().text);
    // The read was ahead of the watch, or the cluster was restored from a backup: the present state
    // decides.
    from_server = facts && newest_.is_outdated(key, facts->resource_version);
    if (from_server && work.states.size() > 1) co_return Result<bool>(true);
  }
  auto text = from_server ? co_await read(id) : Result<std::string>(work.states.front().text);
  if (!text && text.error().code == ErrorCode::not_found) co_return Result<bool>(false);
  if (!text) co_return std::unexpected(text.error());
  const auto reported =
      co_await report_text(grant, id, *text, from_server, work.heartbeat, attempt.trace);
  if (!reported) co_return std::unexpected(reported.error());
  co_return Result<bool>(true);
}

Task<Result<void>> ResourceReporter::report_gone(Grant grant, std::string key,
                                                 std::string tombstone) {
  const auto id = parse_resource_key(key);
  const auto known = ledger_.known().find(key);
  const std::string reported = known == ledger_.known().end() ? std::string() : known->second.uid;
  const auto facts = read_resource(tombstone);
  if (!facts || facts->uid.empty()) tombstone = resource_stub(id.object, reported);
  const auto uid = facts && !facts->uid.empty() ? facts->uid : reported;
  // The entry may be that of a successor, or of a predecessor.
  const bool own = reported.empty() || reported == uid;
  const auto posted = co_await post_gone(grant, id, own ? key : inventory_row(key, uid), tombstone);
  if (!posted) co_return std::unexpected(posted.error());
  const auto* newest = newest_.uid(key);
  if (newest != nullptr && *newest == uid) newest_.forget(key);
  co_return Result<void>();
}

Task<Result<void>> ResourceReporter::report_text(Grant grant, const ResourceKey& id,
                                                 const std::string& text, bool was_read,
                                                 bool heartbeat, SpanContext trace) {
  const auto key = id.to_string();
  const auto facts = read_resource(text);
  if (!facts) {
    note_unreadable(key, facts.error());
    changes_.unreadable(key);
    co_return Result<void>();
  }
  if (was_read) {
    newest_.note(key, facts->uid, facts->resource_version);
  } else {
    newest_.forget(key);
  }
  const auto row = inventory_row(key, facts->uid);
  LedgerHead before;
  if (const auto known = ledger_.known().find(key); known != ledger_.known().end()) {
    before = known->second;
  }
  if (before.uid == facts->uid && before.change == facts->digest && !heartbeat &&
      !grant.retry_refused) {
    ledger_.erase(row);
    co_return Result<void>();
  }
  if (!before.uid.empty() && before.uid != facts->uid) {
    // A predecessor was deleted without a watch event.
    const auto gone = co_await post_gone(grant, id, key, resource_stub(id.object, before.uid));
    if (!gone) co_return std::unexpected(gone.error());
    if (ledger_.known().contains(key)) {
      // Its deletion was refused; the entry makes room for the successor.
      const auto refused = co_await ledger_.load(key);
      if (!refused) co_return std::unexpected(refused.error());
      ledger_.store(inventory_row(key, refused->uid), *refused);
    }
  }
  auto entry = co_await load(key, row);
  if (!entry) co_return std::unexpected(entry.error());
  entry->belong_to(facts->uid);
  auto plan = plan_object(std::move(*entry), facts->digest, heartbeat, grant);
  if (plan.waits) co_return Result<void>();
  const ResourceEventSource source(id, text);
  const auto end = co_await runner_.perform(
      {.grant = grant, .key = key, .row = key, .trace = trace}, plan, source);
  if (end.error) co_return end.result();
  if (!changes_.holds(grant)) co_return std::unexpected(grant_ended());
  ledger_.erase(row);
  co_return Result<void>();
}

// Returns the entry of the object of this row of the inventory: that of the key, unless it belongs to
// another object with this name, or else the row, which another replica may have reported.
Task<Result<LedgerEntry>> ResourceReporter::load(const std::string& key, const std::string& row) {
  const auto known = ledger_.known().find(key);
  const bool own = known != ledger_.known().end() && known->second.uid == uid_of_row(row);
  co_return co_await ledger_.load(own ? key : row);
}

// Reports the deletion of the object whose tombstone `text` is and whose entry has the name `row`,
// and removes the entry and the row of the inventory.
Task<Result<void>> ResourceReporter::post_gone(Grant grant, const ResourceKey& id, std::string row,
                                               std::string text) {
  const auto facts = read_resource(text).value_or(ResourceFacts{});
  const auto inventory = inventory_row(id.to_string(), facts.uid);
  auto entry = co_await load(id.to_string(), inventory);
  if (!entry) co_return std::unexpected(entry.error());
  entry->belong_to(facts.uid);
  // The shard may have come to this process meanwhile; then nobody else reports the deletion.
  if (!changes_.holds(grant)) co_return std::unexpected(grant_ended());
  auto plan = plan_deletion(std::move(*entry), grant);
  if (plan.waits) co_return Result<void>();
  if (plan.left_to_owner) {
    if (row != inventory) ledger_.erase(row);
    changes_.reported_without_shard(id.to_string(), facts.uid, {});
    co_return Result<void>();
  }
  const ResourceEventSource source(id, text);
  const auto end =
      co_await runner_.perform({.grant = grant, .key = id.to_string(), .row = row}, plan, source);
  if (end.error) co_return end.result();
  if (!changes_.holds(grant)) co_return std::unexpected(grant_ended());
  if (!end.erases) co_return Result<void>();
  ledger_.erase(row);
  if (grant.owner) {
    ledger_.erase(inventory);
  } else {
    changes_.reported_without_shard(id.to_string(), facts.uid, {});
  }
  co_return Result<void>();
}

// Reads an object. Limits the reads of each managed cluster, so that one that does not respond
// leaves workers to the other clusters.
Task<Result<std::string>> ResourceReporter::read(const ResourceKey& id) {
  const auto found = clusters_.find(id.cluster);
  if (found == clusters_.end()) {
    co_return fail(ErrorCode::unavailable, "the cluster is not watched now");
  }
  const auto cluster = found->second;
  const auto most = cluster->is_own() ? options_.queue.workers
                                      : std::max<std::size_t>(1, options_.queue.workers / 4);
  if (cluster->reads >= most || Clock::now() < cluster->next_read) {
    co_return std::unexpected(
        Error{.code = ErrorCode::unavailable,
              .message = cluster->name + ": its API server is busy, or does not answer",
              .retry_after = std::chrono::seconds(1)});
  }
  struct Reading {
    explicit Reading(std::size_t& c) : count(c) { ++count; }
    ~Reading() { --count; }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    std::size_t& count;
  };
  const Reading reading(cluster->reads);
  auto answer = co_await cluster->client->get(find_kind(id.kind)->resource, id.object,
                                              deadline_after(kReadTimeout));
  if (!answer && answer.error().code != ErrorCode::not_found) {
    metrics_
        .counter("gitops_event_reporter_errors_total", "Failed attempts by peer and kind",
                 {{"peer", "kubernetes"}, {"code", std::string(to_string(answer.error().code))}})
        .Increment();
    if (!cluster->is_own()) cluster->next_read = Clock::now() + kReadPause;
  }
  co_return answer;
}

void ResourceReporter::note_unreadable(const std::string& key, const Error& error) {
  unreadable_.Increment();
  const auto verdict = repeats_.check(key, Clock::now());
  if (!verdict.pass) return;
  log_.warning("an object cannot be reported",
               {{"resource", key}, {"reason", error.message}, {"suppressed", verdict.suppressed}});
}

// Returns the resourceVersion that a watch delivered last; empty when there is no such object.
std::string_view ResourceReporter::watched_version(const std::string& key) const {
  const auto id = parse_resource_key(key);
  const auto cluster = clusters_.find(id.cluster);
  if (cluster == clusters_.end()) return {};
  for (const auto& watch : cluster->second->watches) {
    if (watch->what().name != id.kind) continue;
    if (const auto* record = watch->find(id.object)) return record->resource_version();
  }
  return {};
}

Task<> ResourceReporter::tick() {
  while (true) {
    undelivered_.look(Clock::now());
    if (queue_.heartbeat_due()) changes_.send_heartbeat();
    resources_.Set(static_cast<double>(changes_.owned()));
    std::size_t failing = 0;
    for (const auto& [id, cluster] : clusters_) {
      if (!cluster->is_own() && !cluster->last_error().empty()) ++failing;
    }
    clusters_size_.Set(static_cast<double>(clusters_.size() - 1));
    failing_clusters_.Set(static_cast<double>(failing));
    co_await sleep_for(kTick);
  }
}

// -- what people see --

// An unreachable managed cluster is no reason to restart this process.
std::optional<Resync::Listed> ResourceReporter::listed() const {
  Resync::Listed listed;
  std::set<std::pair<std::string, std::string>>
      lacking;  // cluster and kind with a watch that is not listed, or an object that is not known
  for (const auto& [id, cluster] : clusters_) {
    for (const auto& watch : cluster->watches) {
      if (watch->is_listed()) continue;
      if (cluster->is_own() && !watch->is_missing()) return std::nullopt;
      lacking.emplace(id, watch->what().resource.kind);
    }
  }
  // Their kinds were listed, but the ledger does not have them.
  for (const auto& key : changes_.unannounced_away()) {
    const auto id = parse_resource_key(key);
    if (const auto* kind = find_kind(id.kind)) lacking.emplace(id.cluster, kind->resource.kind);
  }
  for (const auto& [id, cluster] : clusters_) {
    for (const auto& watch : cluster->watches) {
      const auto& kind = watch->what().resource.kind;
      if (!lacking.emplace(id, kind).second) continue;  // or listed by another watch already
      listed.push_back({.cluster = cluster->is_own() ? std::string() : id, .kind = kind});
    }
  }
  return listed;
}

std::vector<ReadyCheck> ResourceReporter::ready_checks() {
  return {{"resources",
           [this] {
             const auto own = clusters_.find(std::string(kOwnCluster));
             return own == clusters_.end() ? std::string("not started") : own->second->last_error();
           }},
          {"platform", [this] { return delivery_.last_error(); }}};
}

StatusReport ResourceReporter::status() const {
  StatusEntry resources{.name = "resources"};
  resources.add_count("count", changes_.owned(), "");
  std::size_t taken_over = 0;
  const auto add = [&](const std::string& id, const Cluster& cluster) {
    for (const auto& lag : cluster.lags) taken_over = std::max(taken_over, lag.unknown());
    StatusEntry entry{.name =
                          "cluster " + (cluster.is_own() ? id : cluster.name + " (" + id + ")")};
    for (const auto& watch : cluster.watches) entry.add_detail(watch->status());
    if (std::ranges::any_of(entry.details, [](const StatusEntry& kind) {
          return kind.state == StatusState::failed;
        })) {
      entry.state = StatusState::degraded;
    }
    resources.add_detail(std::move(entry));
  };
  // The own cluster comes first, so that it is never left out.
  for (const bool own : {true, false}) {
    for (const auto& [id, cluster] : clusters_) {
      if (cluster->is_own() == own) add(id, *cluster);
    }
  }
  return joined({StatusReport{std::move(resources)},
                 status_of_take_overs(changes_.awaiting_take_over() + taken_over),
                 queue_.status()});
}

}  // namespace gitops::reporter
