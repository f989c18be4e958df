#include "event-reporter/report/application_reporter.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <prometheus/counter.h>

#include "common/core/json_text.hpp"
#include "common/core/race.hpp"
#include "event-reporter/event/app_view.hpp"
#include "event-reporter/event/event_body.hpp"
#include "event-reporter/event/manifest.hpp"
#include "event-reporter/report/event_id.hpp"
#include "event-reporter/report/report_work.hpp"

namespace gitops::reporter {
namespace {

// Size above which a snapshot is parsed and digested on a worker thread, so that the loop is not
// blocked for 5 ms: 36 MB take about 100 ms, this size 3 ms.
constexpr std::size_t kLargeSnapshot = std::size_t{1} << 20;
constexpr auto kMakeTimeout = std::chrono::minutes(1);
constexpr auto kApplicationReadTimeout = std::chrono::seconds(30);
// Pause between two looks for another state during a long read.
constexpr auto kStateLook = std::chrono::seconds(1);
constexpr std::size_t kMaxLongReads = 2;  // at a time

// Counts a long read while it lasts.
struct LongRead {
  LongRead(std::size_t& all, std::size_t n) : count(all), own(n) { count += own; }
  ~LongRead() { count -= own; }
  LongRead(const LongRead&) = delete;
  LongRead& operator=(const LongRead&) = delete;
  std::size_t& count;
  std::size_t own;
};

// The events of an application and its resources.
class ApplicationEventSource final : public EventSource {
 public:
  ApplicationEventSource(std::string key, std::shared_ptr<const ApplicationEvents> events,
                         bool large = false)
      : key_(std::move(key)), events_(std::move(events)), large_(large) {}

  [[nodiscard]] Delivery::Event make(const PlannedEvent& event, std::string_view uid,
                                     Sequence sequence) const override {
    const auto part = event.part ? part_of(*event.part) : std::string(kApplicationPart);
    return {.part = std::string(event.part ? "resource" : "application") +
                    (event.is_gone() ? "_gone" : ""),
            .subject = event.part ? key_ + " " + event.part->identity() : key_,
            .id = event_id(uid, part, sequence, event.content),
            .sequence = sequence,
            .body = {},
            .make_body = body_of(event),
            .reduce = reduced_event,
            .large = large_};
  }

 private:
  [[nodiscard]] Delivery::MakeBody body_of(const PlannedEvent& event) const {
    if (!event.part) {
      return [events = events_, now = now_] { return events->application_event(now); };
    }
    if (event.is_gone()) {
      return
          [events = events_, id = *event.part, now = now_] { return events->gone_event(id, now); };
    }
    return [events = events_, index = event.index, now = now_] {
      return events->resource_event(index, now);
    };
  }

  std::string key_;
  std::shared_ptr<const ApplicationEvents> events_;
  bool large_;
  WallTime now_ = wall_now();
};

}  // namespace

k8s::ObjectKey application_key(std::string_view key) {
  const auto slash = key.find('/');
  return {.ns = std::string(key.substr(0, slash)), .name = std::string(key.substr(slash + 1))};
}

ApplicationReporter::ApplicationReporter(const Executor& executor, k8s::Client& kubernetes,
                                         Gatherer& gatherer, Ledger& ledger, ChangeTracker& changes,
                                         Delivery& delivery, Options options, Metrics& metrics)
    : executor_(executor),
      kubernetes_(kubernetes),
      gatherer_(gatherer),
      ledger_(ledger),
      changes_(changes),
      delivery_(delivery),
      runner_(executor, ledger, changes, delivery, options.resource_workers),
      options_(options),
      scope_(options.resend_on_revision ? DigestScope::resource_and_revision
                                        : DigestScope::resource),
      metrics_(metrics),
      unreadable_(
          metrics.counter("gitops_event_reporter_unreadable_total",
                          "States of objects that could not be read and were not reported")),
      pool_({.name = "reports", .threads = 1, .max_queued = 1024}, metrics) {}

// -- the work of an object --

Task<Result<void>> ApplicationReporter::report_predecessor(Grant grant, std::string key,
                                                           std::string uid) {
  const auto read = co_await kubernetes_.get(k8s::resources::kApplications, application_key(key),
                                             deadline_after(kApplicationReadTimeout));
  if (!read && read.error().code != ErrorCode::not_found) co_return std::unexpected(read.error());
  // It is no predecessor: a read was ahead of the watch, which delivers it later.
  if (read && member_string(member_text(*read, "metadata"), "uid") == uid) co_return Result<void>();
  co_return co_await report_gone(grant, key, application_stub(application_key(key), uid, ""));
}

Task<Result<bool>> ApplicationReporter::report_state(Grant grant, const std::string& key,
                                                     const DirtyWork& work,
                                                     const ReportAttempt& attempt) {
  const bool read = work.states.empty();
  return report_live({.key = key,
                      .grant = grant,
                      .text = read ? std::string{} : work.states.front().text,
                      .change = read ? std::nullopt : work.states.front().digest,
                      .superseded = work.states.size() > 1,
                      .heartbeat = work.heartbeat,
                      .since = work.since,
                      .attempt = attempt});
}

Task<Result<void>> ApplicationReporter::report_missed(Grant grant, std::string key,
                                                      const DirtyWork& work) {
  const bool is_known = ledger_.known().contains(key);
  if (!work.live && is_known) co_return co_await report_unseen_predecessor(grant, key);
  if (!work.live || grant.owner) co_return Result<void>();
  // Another replica reports the application now, and does not know the resources that only this one
  // reported.
  auto text = work.states.empty() ? std::string{} : work.states.back().text;
  if (text.empty() && !is_known) co_return Result<void>();
  if (text.empty()) {
    auto read = co_await kubernetes_.get(k8s::resources::kApplications, application_key(key),
                                         deadline_after(kApplicationReadTimeout));
    if (!read && read.error().code == ErrorCode::not_found) {
      co_return Result<void>();  // the watch will deliver its deletion
    }
    if (!read) co_return std::unexpected(read.error());
    text = std::move(*read);
  }
  const auto app = AppView::parse(text);
  if (!app) co_return Result<void>();  // unreadable
  changes_.seen_without_shard(key, app->uid(), text);
  if (!is_known) co_return Result<void>();
  co_return co_await report_lost_parts(grant, std::move(key), std::move(text));
}

// Reports the deletion of a predecessor that was deleted without a watch event, when its successor
// was deleted before its first report.
Task<Result<void>> ApplicationReporter::report_unseen_predecessor(Grant grant, std::string key) {
  const auto read = co_await kubernetes_.get(k8s::resources::kApplications, application_key(key),
                                             deadline_after(kApplicationReadTimeout));
  // An Application that exists is reported when the watch delivers it.
  if (read) co_return Result<void>();
  if (read.error().code != ErrorCode::not_found) co_return std::unexpected(read.error());
  const auto known = ledger_.known().find(key);
  if (known == ledger_.known().end()) co_return Result<void>();
  auto stub = application_stub(application_key(key), known->second.uid, "");
  co_return co_await report_gone(grant, std::move(key), std::move(stub));
}

// -- an Application that exists --

Task<Result<bool>> ApplicationReporter::report_live(Live live) {
  if (live.superseded) {
    Part own{.reads = Gatherer::Reads::of_application};
    co_return co_await report_part(live, own);
  }
  if (!in_parts_.contains(live.key)) {
    Part whole;
    const auto reported = co_await report_first_part(live, whole);
    if (!whole.too_large) co_return reported;
    in_parts_.insert(live.key);
  }
  co_return co_await report_in_parts(live);
}

// A state that is older than the reported one is from before a read that was ahead of the watch, or
// from a cluster that was restored from a backup. The newest state decides.
Task<Result<bool>> ApplicationReporter::report_first_part(Live& live, Part& part) {
  const Part whole = part;
  const auto reported = co_await report_part(live, part);
  if (!part.outdated) co_return reported;
  live.text.clear();
  live.change.reset();
  part = whole;
  co_return co_await report_part(live, part);
}

// Reads the managed resources in parts, each small enough for one response, and reports them one
// after the other, so that only one of them is in memory.
Task<Result<bool>> ApplicationReporter::report_in_parts(Live& live) {
  Part own{.reads = Gatherer::Reads::of_application, .is_last = false, .lists = true};
  const auto known = co_await report_first_part(live, own);
  if (!known || !*known) co_return known;
  live.heartbeat = false;
  auto rest = split_read({}, own.resources);
  if (rest.empty()) rest.emplace_back();  // the application has no resources any more
  std::optional<Error> failure;
  std::size_t bytes = 0;
  while (!rest.empty()) {
    Part part{.only = std::move(rest.back()), .lists = true};
    rest.pop_back();
    part.is_last = rest.empty() && !failure;
    const auto reported = co_await report_part(live, part);
    if (reported && !*reported) co_return reported;
    bytes += part.bytes;
    if (reported) continue;
    if (part.too_large) {
      auto finer = split_read(part.only, part.resources);
      std::ranges::move(finer, std::back_inserter(rest));
      if (!finer.empty()) continue;
    }
    if (!failure) {
      failure = reported.error();
      if (part.too_large) failure->retry_after = options_.gap_retry;
    }
    // No other part can be reported then.
    if (delivery_.breaker().state() != Breaker::State::closed || !changes_.holds(live.grant)) break;
  }
  if (failure) co_return std::unexpected(*failure);
  if (bytes < options_.whole_below) in_parts_.erase(live.key);
  co_return Result<bool>(true);
}

Task<Result<bool>> ApplicationReporter::report_part(Live& live, Part& part) {
  const bool was_read = live.text.empty();
  const auto seen = changes_.seen_state(live.key);
  // The wait for memory is not counted as time of the reads.
  auto memory = co_await gatherer_.reserve(live.key);
  auto gathered = co_await gather(live, part);
  if (!gathered) co_return fail(ErrorCode::timeout, "its reads take long and give way");
  memory.resize(gathered->bytes);
  if (gathered->outcome == Gathered::Outcome::gone) co_return Result<bool>(false);
  if (gathered->unreadable) {
    // Its next state may be readable; the same one never is.
    note_unreadable(live.key, gathered->why);
    co_return Result<bool>(true);
  }
  part.too_large = gathered->too_large;
  if (part.too_large || (part.lists && gathered->has_snapshot())) {
    // The parts that follow need these values.
    const auto& app = gathered->snapshot.app;
    part.resources = app.app.resource_ids();
    part.bytes = app.managed ? app.managed->size() : 0;
    live.text = std::string(app.app.text());
  }
  const bool in_deletion = gathered->in_deletion;
  const bool is_waited_for = waits(live, gathered->missing, in_deletion);
  if (gathered->too_large || !gathered->has_snapshot() || is_waited_for) {
    count_error(gathered->why, gathered->from_kubernetes ? "kubernetes" : "argocd");
    co_return std::unexpected(gathered->has_snapshot() && is_waited_for
                                  ? in_time(std::move(gathered->why), live)
                                  : std::move(gathered->why));
  }
  gathered->snapshot.change = live.change;
  const auto made = co_await make(std::move(*gathered));
  if (!made) {
    count_error(made.error());
    co_return std::unexpected(lasting(made.error(), live.attempt.failures));
  }
  if (waits(live, made->missing, in_deletion)) {
    count_error(made->why);
    co_return std::unexpected(in_time(made->why, live));
  }
  const auto& events = *made->events;
  part.outdated = !was_read && newest_.is_outdated(live.key, events.resource_version());
  if (part.outdated) co_return Result<bool>(true);
  newest_.note(live.key, events.uid(), events.resource_version());
  auto entry = co_await entry_for(live.grant, live.key, std::string(events.uid()));
  if (!entry) co_return std::unexpected(entry.error());
  // The entry has the resources of each state that was seen until now. A state that was read may be
  // ahead of the watch.
  const auto now = changes_.seen_state(live.key);
  part.overtaken = now != events.change() && !(was_read && now == seen);
  co_return co_await report_made(live, part, *made, std::move(*entry));
}

bool ApplicationReporter::waits(const Live& live, const MissingParts& missing,
                                bool in_deletion) const {
  return waits_for_reads(missing, in_deletion, live.attempt.failures, Clock::now() - live.since,
                         options_.wait_limits);
}

// Returns the entry of the Application with this uid. Reports first the deletion of a predecessor
// that was deleted without a watch event.
Task<Result<LedgerEntry>> ApplicationReporter::entry_for(const Grant& grant, const std::string& key,
                                                         std::string uid) {
  auto loaded = co_await ledger_.load(key);
  if (!loaded) co_return std::unexpected(loaded.error());
  auto entry = std::move(*loaded);
  if (!entry.uid.empty() && entry.uid != uid) {
    const auto gone =
        co_await report_gone(grant, key, application_stub(application_key(key), entry.uid, ""));
    if (!gone) co_return std::unexpected(gone.error());
    if (const auto kept = co_await store_refused(key); !kept) {
      co_return std::unexpected(kept.error());
    }
    entry = {};
  }
  entry.belong_to(uid);
  if (const auto adopted = co_await adopt(grant, key, entry); !adopted) {
    co_return std::unexpected(adopted.error());
  }
  co_return entry;
}

Task<Result<bool>> ApplicationReporter::report_made(const Live& live, const Part& part,
                                                    const EventSet& made, LedgerEntry entry) {
  const auto& events = *made.events;
  auto plan = plan_application(
      std::move(entry),
      {.uid = events.uid(),
       .content = events.application_digest(),
       .change = events.change(),
       .resources = events.resources(),
       .resources_known = events.resources_known(),
       .lists_every_resource = events.lists_every_resource(),
       .is_overtaken = part.overtaken,
       .tree = made.tree,
       .lacks_commits = made.lacks_commits,
       .missing = made.missing},
      {.superseded = live.superseded,
       .heartbeat = live.heartbeat,
       .is_last = part.is_last,
       .why = made.missing.outage() ? lasting(made.why, live.attempt.failures) : made.why},
      live.grant);
  const ApplicationEventSource source(live.key, made.events, made.large);
  const auto end = co_await runner_.perform(
      {.grant = live.grant, .key = live.key, .row = live.key, .trace = live.attempt.trace}, plan,
      source);
  const auto& own = plan.entry.application;
  const auto rest = incomplete_.find(live.key);
  if (made.missing.outage() && own && own->has(events.application_digest())) {
    incomplete_.insert_or_assign(live.key, events.change());
  } else if (rest != incomplete_.end() &&
             (part.is_last || made.missing.outage() || rest->second != events.change())) {
    // A complete part says nothing about those that follow.
    incomplete_.erase(rest);
  }
  if (end.error) co_return std::unexpected(*end.error);
  co_return Result<bool>(true);
}

// Gathers the snapshot; absent when the reads took long and had to end.
Task<std::optional<Gathered>> ApplicationReporter::gather(Live& live, const Part& part) {
  // Nothing but the missing parts waits for the reads when the rest of this state was reported. Few reads
  // may be long, since other slow applications wait for the workers.
  const auto reported = incomplete_.find(live.key);
  const bool is_rest = reported != incomplete_.end() &&
                       changes_.seen_state(live.key) == reported->second &&
                       long_reads_ < kMaxLongReads && gatherer_.argocd_error().empty();
  const LongRead long_read(long_reads_, is_rest ? 1U : 0U);
  auto reads = gatherer_.gather(application_key(live.key), std::exchange(live.text, {}), part.reads,
                                part.only, live.attempt.trace,
                                is_rest ? Gatherer::kLongReadLimit : Gatherer::kReadLimit);
  if (!live.attempt.until_reads_must_end) co_return co_await std::move(reads);
  auto end =
      is_rest ? until_rest_must_end(live, reported->second) : live.attempt.until_reads_must_end();
  auto race = asio::experimental::make_parallel_group(
      asio::co_spawn(executor_, spawnable(std::move(reads)), asio::deferred),
      asio::co_spawn(executor_, spawnable(std::move(end)), asio::deferred));
  auto [order, failure, gathered, end_failure] =
      co_await race.async_wait(asio::experimental::wait_for_one(), use_task);
  if (order[0] == 1 && !end_failure) co_return std::nullopt;
  if (failure) std::rethrow_exception(failure);
  co_return std::move(gathered);
}

// Waits until reads for the rest of a state must end: also when the watch delivers another one, whose own
// event is due.
Task<> ApplicationReporter::until_rest_must_end(const Live& live, Digest state) {
  auto race = asio::experimental::make_parallel_group(
      asio::co_spawn(executor_, spawnable(live.attempt.until_reads_must_end()), asio::deferred),
      asio::co_spawn(executor_, spawnable(until_another_state(live.key, state)), asio::deferred));
  auto [order, end_failure, state_failure] =
      co_await race.async_wait(asio::experimental::wait_for_one(), use_task);
  const auto failure = order[0] == 0 ? end_failure : state_failure;
  if (failure) std::rethrow_exception(failure);
}

Task<> ApplicationReporter::until_another_state(std::string key, Digest state) {
  while (changes_.seen_state(key) == state) co_await sleep_for(kStateLook);
}

// Adds the responses of another shape than Argo CD's to the missing parts; `came` are all that came.
void ApplicationReporter::add_unusable(EventSet& made, const MissingParts& came) {
  const MissingParts unusable{.tree = came.tree && !made.events->tree_known(),
                              .managed = came.managed && !made.events->resources_known(),
                              .parent = came.parent && !made.events->parent_known()};
  if (!unusable.any()) return;
  made.missing.tree = made.missing.tree || unusable.tree;
  made.missing.managed = made.missing.managed || unusable.managed;
  made.missing.parent = made.missing.parent || unusable.parent;
  if (!made.why.message.empty()) return;
  made.why = {.code = ErrorCode::invalid_data,
              .message = "an answer of Argo CD lacks the list that belongs in it"};
}

Task<Result<ApplicationReporter::EventSet>> ApplicationReporter::make(Gathered gathered) {
  const auto bytes = gathered.bytes;
  auto work = [gathered = std::move(gathered), scope = scope_](std::stop_token) mutable {
    EventSet made{.events = {},
                  .tree = {},
                  .missing = gathered.missing,
                  .why = std::move(gathered.why),
                  .lacks_commits = gathered.snapshot.lacks_commits,
                  .large = gathered.bytes >= kLargeSnapshot};
    if (gathered.snapshot.tree) made.tree = tree_digest(*gathered.snapshot.tree);
    const auto& parent = gathered.snapshot.parent;
    const MissingParts came{.tree = gathered.snapshot.tree.has_value(),
                            .managed = gathered.snapshot.app.managed.has_value(),
                            .parent = parent && parent->managed};
    auto events =
        ApplicationEvents::make(std::move(gathered.snapshot), std::move(gathered.settings), scope);
    if (!events) return Result<EventSet>(std::unexpected(std::move(events.error())));
    made.events = std::make_shared<const ApplicationEvents>(std::move(*events));
    add_unusable(made, came);
    return Result<EventSet>(std::move(made));
  };
  if (bytes < kLargeSnapshot) co_return work({});
  co_return co_await pool_.run(deadline_after(kMakeTimeout), std::move(work));
}

Task<Result<ApplicationReporter::Events>> ApplicationReporter::make_gone(AppView app) {
  auto gathered = co_await gatherer_.gather_gone(std::move(app));
  if (!gathered.has_snapshot()) co_return std::unexpected(gathered.why);
  auto made = ApplicationEvents::make(std::move(gathered.snapshot), std::move(gathered.settings));
  if (!made) co_return std::unexpected(made.error());
  co_return Events(std::make_shared<const ApplicationEvents>(std::move(*made)));
}

Task<Result<void>> ApplicationReporter::report_gone(Grant grant, std::string key,
                                                    std::string tombstone) {
  in_parts_.erase(key);
  incomplete_.erase(key);
  auto app = AppView::parse(std::move(tombstone));
  // An unreadable tombstone still has a name.
  if (!app) app = AppView::parse(application_stub(application_key(key), "", ""));
  if (!app) co_return std::unexpected(app.error());
  const auto events = co_await make_gone(std::move(*app));
  if (!events) co_return std::unexpected(events.error());
  const std::string uid((*events)->uid());

  auto loaded = co_await ledger_.load(key);
  if (!loaded) co_return std::unexpected(loaded.error());
  auto entry = std::move(*loaded);
  const bool own = entry.uid.empty() || entry.uid == uid || uid.empty();
  if (!own) entry = {};  // the entry of a successor
  if (entry.uid.empty()) entry.uid = uid;
  const auto row = inventory_row(key, uid);
  if (const auto added = co_await add_inventory(row, entry); !added) {
    co_return std::unexpected(added.error());
  }
  // The shard may have come to this process meanwhile; then nobody else reports the deletion.
  if (!changes_.holds(grant)) co_return std::unexpected(grant_ended());
  auto plan = plan_deletion(std::move(entry), grant);
  const auto parts = grant.owner ? std::vector<ResourceId>() : plan.entry.resource_ids();
  if (plan.left_to_owner) {
    if (own) ledger_.erase(key);
    changes_.reported_without_shard(key, plan.entry.uid, parts);
    co_return Result<void>();
  }
  const ApplicationEventSource source(key, *events);
  const auto end =
      co_await runner_.perform({.grant = grant, .key = key, .row = own ? key : row}, plan, source);
  if (end.stopped) co_return end.result();
  if (!changes_.holds(grant)) co_return std::unexpected(grant_ended());
  if (!end.erases) {
    if (own) ledger_.erase(row);
    co_return end.result();
  }
  if (own) ledger_.erase(key);
  if (grant.owner) {
    ledger_.erase(row);
  } else {
    changes_.reported_without_shard(key, plan.entry.uid, parts);
  }
  // The state of a successor with the same name may be known already.
  const auto* newest = newest_.uid(key);
  if (newest != nullptr && *newest == uid) newest_.forget(key);
  co_return Result<void>();
}

// Adds the inventory's row of the application, which another replica may have reported. Returns
// false when there is no such row.
Task<Result<bool>> ApplicationReporter::add_inventory(const std::string& row, LedgerEntry& entry) {
  if (!ledger_.inventory().contains(row)) co_return Result<bool>(false);
  auto seen = co_await ledger_.load(row);
  if (!seen) co_return std::unexpected(seen.error());
  // Rows of earlier versions have child applications, too.
  std::erase_if(seen->resources, [](const auto& part) {
    return is_application(ResourceId::of_identity(part.first, {}));
  });
  if (!entry.application) entry.application = seen->application;
  if (entry.refused.empty()) entry.refused = std::move(seen->refused);
  entry.resources.merge(std::move(seen->resources));
  entry.sequence = std::max(entry.sequence, seen->sequence);
  co_return Result<bool>(true);
}

// Makes room for a successor: moves the entry of a deleted application, which has deletions that were
// refused, into the inventory.
Task<Result<void>> ApplicationReporter::store_refused(const std::string& key) {
  if (!ledger_.known().contains(key)) co_return Result<void>();
  const auto entry = co_await ledger_.load(key);
  if (!entry) co_return std::unexpected(entry.error());
  if (!entry->refused.empty()) ledger_.store(inventory_row(key, entry->uid), *entry);
  co_return Result<void>();
}

// Moves the inventory's row of the application into its own entry.
Task<Result<void>> ApplicationReporter::adopt(const Grant& grant, const std::string& key,
                                              LedgerEntry& entry) {
  const auto row = inventory_row(key, entry.uid);
  const auto added = co_await add_inventory(row, entry);
  if (!added) co_return std::unexpected(added.error());
  if (!*added) co_return Result<void>();
  if (!changes_.holds(grant)) co_return std::unexpected(grant_ended());
  entry.change.reset();
  ledger_.store(key, entry);
  ledger_.erase(row);
  co_return Result<void>();
}

Task<Result<void>> ApplicationReporter::report_lost_parts(Grant grant, std::string key,
                                                          std::string text) {
  auto entry = co_await ledger_.load(key);
  if (!entry) co_return std::unexpected(entry.error());
  auto app = AppView::parse(std::move(text));
  if (!app) co_return Result<void>();  // unreadable
  // Resources that the Application lacks may be some that Argo CD could not read.
  if (!app->was_compared()) co_return Result<void>();
  if (newest_.is_outdated(key, app->metadata()["resourceVersion"].text())) co_return Result<void>();
  if (!entry->uid.empty() && entry->uid != app->uid()) {
    co_return co_await report_gone(grant, key,
                                   application_stub(application_key(key), entry->uid, ""));
  }
  const auto resources = app->resource_ids();
  auto plan = plan_lost_parts(std::move(*entry), resources, grant);
  if (plan.events.empty()) co_return Result<void>();
  std::vector<ResourceId> gone;
  for (const auto& event : plan.events) gone.push_back(*event.part);
  const auto events = co_await make_gone(std::move(*app));
  if (!events) co_return std::unexpected(events.error());
  const ApplicationEventSource source(key, *events);
  const auto end = co_await runner_.perform({.grant = grant, .key = key, .row = key}, plan, source);
  if (!end.error) changes_.reported_without_shard(key, plan.entry.uid, gone, resources);
  co_return end.result();
}

Task<Result<bool>> ApplicationReporter::tree_changed(std::string key, std::string project) {
  const auto memory = co_await gatherer_.reserve(key);
  const auto entry = co_await ledger_.load(key);
  if (!entry) co_return std::unexpected(entry.error());
  const auto tree = co_await gatherer_.tree(application_key(key), std::move(project));
  if (!tree) co_return std::unexpected(tree.error());
  const auto bytes = tree->size();
  auto compare = [text = std::move(*tree), known = entry->tree](std::stop_token) {
    JsonParser parser;
    const bool usable = parser.parse_object(text, "the answer of resource-tree").has_value();
    return Result<bool>(usable && known != tree_digest(text));
  };
  if (bytes < kLargeSnapshot) co_return compare({});
  co_return co_await pool_.run(deadline_after(kMakeTimeout), std::move(compare));
}

void ApplicationReporter::count_error(const Error& error, std::string_view peer) {
  metrics_
      .counter("gitops_event_reporter_errors_total", "Failed attempts by peer and kind",
               {{"peer", std::string(peer)}, {"code", std::string(to_string(error.code))}})
      .Increment();
}

void ApplicationReporter::note_unreadable(const std::string& key, const Error& error) {
  changes_.unreadable(key);
  unreadable_.Increment();
  const auto verdict = repeats_.check(key, Clock::now());
  if (!verdict.pass) return;
  log_.warning(
      "an Application cannot be reported",
      {{"application", key}, {"reason", error.message}, {"suppressed", verdict.suppressed}});
}

// Ends a pause that Argo CD asks for when the application's own event no longer waits for its
// answers.
Error ApplicationReporter::in_time(Error error, const Live& live) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      live.since + options_.wait_limits.silence - Clock::now());
  error.retry_after = std::min(error.retry_after, std::max(left, std::chrono::milliseconds(0)));
  return error;
}

Error ApplicationReporter::lasting(Error error, unsigned failures) const {
  if (failures < options_.wait_limits.failures) return error;
  auto pause = options_.first_gap_retry;
  for (auto more = failures - options_.wait_limits.failures; more > 0 && pause < options_.gap_retry;
       --more) {
    pause *= 2;
  }
  // Argo CD may ask for a longer pause.
  error.retry_after = std::max(error.retry_after, std::min(pause, options_.gap_retry));
  return error;
}

}  // namespace gitops::reporter
