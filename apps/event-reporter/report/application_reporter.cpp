#include "event-reporter/report/application_reporter.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
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

// Acknowledged events of one application between two writes to the ledger.
constexpr std::size_t kStoreEvery = 100;

// Larger snapshots are parsed and digested on a thread of their own, since the loop is not to be held
// for 5 ms: 36 MB take about 100 ms, this size 3 ms.
constexpr std::size_t kLargeSnapshot = std::size_t{1} << 20;
constexpr auto kMakeTimeout = std::chrono::minutes(1);
constexpr auto kReadTimeout = std::chrono::seconds(30);

Refused refused_of(const Grant& grant) {
  return grant.retry_refused ? Refused::retry : Refused::wait;
}

// Leaves only events of which the content is known: nothing follows from what could not be read.
void retain_known(Difference& due, const ApplicationEvents& events) {
  if (!events.lists_every_resource()) due.gone.clear();
  std::erase_if(due.changed, [&](std::size_t index) { return !events.resources()[index].known; });
}

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
      options_(options),
      scope_(options.resend_on_revision ? DigestScope::resource_and_revision
                                        : DigestScope::resource),
      metrics_(metrics),
      pool_({.name = "reports", .threads = 1, .max_queued = 1024}, metrics) {}

// -- the work of an object --

Task<Result<void>> ApplicationReporter::report_predecessor(Grant grant, std::string key,
                                                           std::string uid) {
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
  if (!ledger_.known().contains(key)) co_return Result<void>();
  if (!work.live) co_return co_await report_unseen_predecessor(grant, key);
  if (grant.owner) co_return Result<void>();
  // Another replica reports the application now, and does not know the resources that only this one
  // reported.
  auto text = work.states.empty() ? std::string{} : work.states.back().text;
  if (text.empty()) {
    auto read = co_await kubernetes_.get(k8s::resources::kApplications, application_key(key),
                                         deadline_after(kReadTimeout));
    if (!read && k8s::says_not_found(read.error())) {
      co_return Result<void>();  // the watch will deliver its deletion
    }
    if (!read) co_return std::unexpected(read.error());
    text = std::move(*read);
  }
  co_return co_await report_lost_parts(grant, std::move(key), std::move(text));
}

// Reports the deletion of a predecessor that was deleted without a watch event, when its successor
// was deleted before its first report.
Task<Result<void>> ApplicationReporter::report_unseen_predecessor(Grant grant, std::string key) {
  const auto read = co_await kubernetes_.get(k8s::resources::kApplications, application_key(key),
                                             deadline_after(kReadTimeout));
  // An Application that exists is reported when the watch delivers it.
  if (read) co_return Result<void>();
  if (!k8s::says_not_found(read.error())) co_return std::unexpected(read.error());
  const auto known = ledger_.known().find(key);
  if (known == ledger_.known().end()) co_return Result<void>();
  co_return co_await report_predecessor(grant, key, known->second.uid);
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

// A state that is older than what was reported is from before a read that was ahead of the watch, or
// from a cluster that was restored from a backup. The newest one decides.
Task<Result<bool>> ApplicationReporter::report_first_part(Live& live, Part& part) {
  const Part whole = part;
  const auto reported = co_await report_part(live, part);
  if (!part.outdated) co_return reported;
  live.text.clear();
  live.change.reset();
  part = whole;
  co_return co_await report_part(live, part);
}

// Reads the managed resources in parts, each small enough for one answer, and reports them one after
// the other, so that only one of them is in memory.
Task<Result<bool>> ApplicationReporter::report_in_parts(Live& live) {
  Part own{.reads = Gatherer::Reads::of_application, .is_last = false, .lists = true};
  const auto known = co_await report_first_part(live, own);
  if (!known || !*known) co_return known;
  live.heartbeat = false;
  auto rest = split_read({}, own.resources);
  if (rest.empty()) rest.emplace_back();  // it has no resources any more
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
    if (!failure)
      failure =
          part.too_large ? lasting(reported.error(), options_.max_failures) : reported.error();
    // Then no other part can be told, either.
    if (delivery_.breaker().state() != Breaker::State::closed || !changes_.holds(live.grant)) break;
  }
  if (failure) co_return std::unexpected(*failure);
  if (bytes < options_.whole_below) in_parts_.erase(live.key);
  co_return Result<bool>(true);
}

Task<Result<bool>> ApplicationReporter::report_part(Live& live, Part& part) {
  const auto& key = live.key;
  const bool was_read = live.text.empty();
  // Not a part of the time that its reads take.
  auto memory = co_await gatherer_.reserve(key);
  auto read = co_await gather(live, part);
  if (!read) co_return fail(ErrorCode::timeout, "its reads take long and give way to others");
  auto& gathered = *read;
  memory.resize(gathered.bytes);
  if (gathered.outcome == Gathered::Outcome::gone) co_return Result<bool>(false);
  part.too_large = gathered.too_large;
  if (part.too_large || (part.lists && gathered.has_snapshot())) {
    // For the parts that follow.
    const auto& app = gathered.snapshot.app;
    part.resources = app.app.resource_ids();
    part.bytes = app.managed ? app.managed->size() : 0;
    live.text = std::string(app.app.text());
  }
  if (part.too_large) {
    count_error(gathered.why);
    co_return std::unexpected(gathered.why);
  }
  const auto missing = gathered.missing;
  const bool impatient = gathered.in_deletion || live.attempt.failures >= options_.max_failures ||
                         Clock::now() - live.since >= options_.silence;
  if (!gathered.has_snapshot() || (missing.may_be_read() && !impatient)) {
    count_error(gathered.why);
    co_return std::unexpected(gathered.why);
  }
  gathered.snapshot.change = live.change;
  const bool lacks_commits = gathered.snapshot.lacks_commits;
  const auto why = gathered.why;
  const bool large = gathered.bytes >= kLargeSnapshot;
  const auto made = co_await make(std::move(gathered));
  if (!made) {
    count_error(made.error());
    co_return std::unexpected(lasting(made.error(), live.attempt.failures));
  }
  const auto events = made->events;
  const auto version = events->resource_version();
  part.outdated = !was_read && newest_.is_outdated(key, version);
  if (part.outdated) co_return Result<bool>(true);
  newest_.note(key, events->uid(), version);

  auto loaded = co_await ledger_.load(key);
  if (!loaded) co_return std::unexpected(loaded.error());
  Report report{
      .grant = live.grant, .key = key, .row = key, .entry = std::move(*loaded), .large = large};
  auto& entry = report.entry;
  if (!entry.uid.empty() && entry.uid != events->uid()) {
    // A predecessor was deleted without a watch event.
    const auto gone = co_await report_gone(live.grant, key,
                                           application_stub(application_key(key), entry.uid, ""));
    if (!gone) co_return std::unexpected(gone.error());
    if (const auto kept = co_await store_refused(key); !kept) {
      co_return std::unexpected(kept.error());
    }
    entry = {};
  }
  entry.belong_to(events->uid());
  if (const auto adopted = co_await adopt(report); !adopted) {
    co_return std::unexpected(adopted.error());
  }
  const auto now = wall_now();
  const bool with_resources = events->resources_known() && !live.superseded;
  auto due = diff(entry, events->uid(), events->application_digest(),
                  with_resources ? std::optional(events->resources()) : std::nullopt,
                  refused_of(live.grant));
  retain_known(due, *events);
  // Until all events are acknowledged, a restart reports this application again.
  entry.change.reset();
  if (const auto announced = co_await announce(report, *events, due, events->application_digest());
      !announced) {
    co_return std::unexpected(announced.error());
  }
  if (due.application || (live.heartbeat && !entry.is_refused({}, events->application_digest()))) {
    const auto posted =
        co_await post_application(report, "application", events->application_digest(),
                                  [events, now] { return events->application_event(now); });
    if (!posted) co_return std::unexpected(posted.error());
    store(report);
  }
  const auto posted = co_await post_resources(report, events, due, now);
  if (posted && !missing.may_be_read() && !live.superseded && part.is_last) {
    // After a failed comparison the rest is told with the next change of the Application.
    if (!missing.comparison) entry.change = events->change();
    // Argo CD does not always tell the managed resources of an application in deletion, and may
    // refuse the metadata of a commit. Then the next sweep finds the tree changed, and asks for
    // them again.
    entry.tree = events->resources_known() && !lacks_commits ? made->tree : std::nullopt;
  }
  store(report);
  if (!posted) co_return std::unexpected(posted.error());
  // What a superseded state lacks comes with the newest one, which must not wait for it.
  if (missing.may_be_read() && !live.superseded) {
    co_return std::unexpected(missing.outage() ? lasting(why, live.attempt.failures) : why);
  }
  co_return Result<bool>(true);
}

// Absent when the reads took long and had to end.
Task<std::optional<Gathered>> ApplicationReporter::gather(Live& live, const Part& part) {
  auto reads = gatherer_.gather(application_key(live.key), std::exchange(live.text, {}), part.reads,
                                part.only);
  if (!live.attempt.until_reads_must_end) co_return co_await std::move(reads);
  auto race = asio::experimental::make_parallel_group(
      asio::co_spawn(executor_, spawnable(std::move(reads)), asio::deferred),
      asio::co_spawn(executor_, spawnable(live.attempt.until_reads_must_end()), asio::deferred));
  auto [order, failure, gathered, end_failure] =
      co_await race.async_wait(asio::experimental::wait_for_one(), use_task);
  if (order[0] == 1 && !end_failure) co_return std::nullopt;
  if (failure) std::rethrow_exception(failure);
  co_return std::move(gathered);
}

Task<Result<ApplicationReporter::EventSet>> ApplicationReporter::make(Gathered gathered) {
  const auto bytes = gathered.bytes;
  auto work = [gathered = std::move(gathered), scope = scope_](std::stop_token) mutable {
    std::optional<Digest> tree;
    if (gathered.snapshot.tree) tree = tree_digest(*gathered.snapshot.tree);
    auto events =
        ApplicationEvents::make(std::move(gathered.snapshot), std::move(gathered.settings), scope);
    if (!events) return Result<EventSet>(std::unexpected(std::move(events.error())));
    return Result<EventSet>(EventSet{
        .events = std::make_shared<const ApplicationEvents>(std::move(*events)), .tree = tree});
  };
  if (bytes < kLargeSnapshot) co_return work({});
  co_return co_await pool_.run(deadline_after(kMakeTimeout), std::move(work));
}

Task<Result<void>> ApplicationReporter::report_gone(Grant grant, std::string key,
                                                    std::string tombstone) {
  in_parts_.erase(key);
  auto app = AppView::parse(std::move(tombstone));
  // A tombstone that cannot be read still has a name.
  if (!app) app = AppView::parse(application_stub(application_key(key), "", ""));
  if (!app) co_return std::unexpected(app.error());
  auto gathered = co_await gatherer_.gather_gone(std::move(*app));
  if (!gathered.has_snapshot()) co_return std::unexpected(gathered.why);
  auto made = ApplicationEvents::make(std::move(gathered.snapshot), std::move(gathered.settings));
  if (!made) co_return std::unexpected(made.error());
  const auto events = std::make_shared<const ApplicationEvents>(std::move(*made));

  auto loaded = co_await ledger_.load(key);
  if (!loaded) co_return std::unexpected(loaded.error());
  Report report{.grant = grant, .key = key, .row = key, .entry = std::move(*loaded)};
  auto& entry = report.entry;
  const bool own = entry.uid.empty() || entry.uid == events->uid() || events->uid().empty();
  const auto row = inventory_row(key, events->uid());
  if (!own) {
    // The entry is that of a successor.
    report.row = row;
    entry = {};
  }
  if (entry.uid.empty()) entry.uid = events->uid();
  if (const auto added = co_await add_inventory(row, entry); !added) {
    co_return std::unexpected(added.error());
  }
  if (!grant.owner && !entry.was_announced()) {
    // The owner of the shard tells the deletion of what this process never reported.
    if (own) ledger_.erase(key);
    changes_.reported_without_shard(key, entry.uid, entry.resource_ids());
    co_return Result<void>();
  }
  const auto now = wall_now();
  const auto due = diff_gone(entry, refused_of(grant));
  const auto parts = grant.owner ? std::vector<ResourceId>() : entry.resource_ids();
  entry.change.reset();
  if (const auto announced = co_await announce(report, *events, due, kGone); !announced) {
    co_return std::unexpected(announced.error());
  }
  if (due.application) {
    const auto posted = co_await post_application(report, "application_gone", kGone, [events, now] {
      return events->application_event(now);
    });
    if (!posted) co_return std::unexpected(posted.error());
  }
  const auto posted = co_await post_resources(report, events, due, now);
  if (!changes_.holds(grant)) co_return std::unexpected(grant_ended());
  if (!posted || !entry.refused.empty()) {
    store(report);
    if (own) ledger_.erase(row);
    co_return posted;
  }
  if (own) ledger_.erase(key);
  if (grant.owner) {
    ledger_.erase(row);
  } else {
    changes_.reported_without_shard(key, entry.uid, parts);
  }
  // A successor of the same name may be known already.
  const auto* newest = newest_.uid(key);
  if (newest != nullptr && *newest == events->uid()) newest_.forget(key);
  co_return Result<void>();
}

// Adds the inventory's row of the application, which another replica may have reported. False when
// there is no such row.
Task<Result<bool>> ApplicationReporter::add_inventory(const std::string& row, LedgerEntry& entry) {
  if (!ledger_.inventory().contains(row)) co_return Result<bool>(false);
  auto seen = co_await ledger_.load(row);
  if (!seen) co_return std::unexpected(seen.error());
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
Task<Result<void>> ApplicationReporter::adopt(Report& report) {
  const auto row = inventory_row(report.key, report.entry.uid);
  const auto added = co_await add_inventory(row, report.entry);
  if (!added) co_return std::unexpected(added.error());
  if (!*added) co_return Result<void>();
  if (!changes_.holds(report.grant)) co_return std::unexpected(grant_ended());
  report.entry.change.reset();
  store(report);
  ledger_.erase(row);
  co_return Result<void>();
}

Task<Result<void>> ApplicationReporter::report_lost_parts(Grant grant, std::string key,
                                                          std::string text) {
  auto loaded = co_await ledger_.load(key);
  if (!loaded) co_return std::unexpected(loaded.error());
  Report report{.grant = grant, .key = key, .row = key, .entry = std::move(*loaded)};
  auto& entry = report.entry;
  auto app = AppView::parse(std::move(text));
  if (!app) co_return Result<void>();  // unreadable
  // What the Application lacks may be what Argo CD could not read.
  if (!app->was_compared()) co_return Result<void>();
  if (newest_.is_outdated(key, app->metadata()["resourceVersion"].text())) co_return Result<void>();
  if (!entry.uid.empty() && entry.uid != app->uid()) {
    co_return co_await report_gone(grant, key,
                                   application_stub(application_key(key), entry.uid, ""));
  }
  const auto resources = app->resource_ids();
  std::set<std::string> present;
  for (const auto& id : resources) present.insert(id.identity());
  auto due = diff_gone(entry, refused_of(grant));
  due.application = false;
  std::erase_if(due.gone, [&](const ResourceId& id) { return present.contains(id.identity()); });
  if (due.gone.empty()) co_return Result<void>();
  auto gathered = co_await gatherer_.gather_gone(std::move(*app));
  if (!gathered.has_snapshot()) co_return std::unexpected(gathered.why);
  auto made = ApplicationEvents::make(std::move(gathered.snapshot), std::move(gathered.settings));
  if (!made) co_return std::unexpected(made.error());
  const auto events = std::make_shared<const ApplicationEvents>(std::move(*made));
  entry.change.reset();
  if (const auto announced = co_await announce(report, *events, due, kGone); !announced) {
    co_return std::unexpected(announced.error());
  }
  const auto posted = co_await post_resources(report, events, due, wall_now());
  store(report);
  if (posted) changes_.reported_without_shard(key, entry.uid, due.gone, resources);
  co_return posted;
}

// Writes down which events are about to be sent, with their sequences. A kill before their
// acknowledgement then neither loses them nor sends another content under the same id, a return to
// the previous state is due as well, and the deletion of a new resource is found. `application` is
// the content of the application's own event.
Task<Result<void>> ApplicationReporter::announce(Report& report, const ApplicationEvents& events,
                                                 const Difference& due, const Digest& application) {
  if (!due.application && due.changed.empty() && due.gone.empty()) co_return Result<void>();
  auto& entry = report.entry;
  const auto fresh = changes_.next(report.grant, report.key, wall_now(), entry);
  if (due.application) entry.announce(application, fresh);
  for (const auto index : due.changed) {
    const auto& resource = events.resources()[index];
    entry.announce(resource.id, resource.digest, fresh);
  }
  for (const auto& id : due.gone) entry.announce(id, kGone, fresh);
  co_return co_await write_ahead(report);
}

Task<Result<void>> ApplicationReporter::write_ahead(Report& report) {
  if (!changes_.holds(report.grant)) co_return std::unexpected(grant_ended());
  co_return co_await ledger_.write_ahead(report.row, report.entry);
}

// Without effect after the end of the grant: the entry may be that of a new term.
void ApplicationReporter::store(const Report& report) {
  if (changes_.holds(report.grant)) ledger_.store(report.row, report.entry);
}

Task<Result<void>> ApplicationReporter::post_application(Report& report, std::string part,
                                                         const Digest& content,
                                                         Delivery::MakeBody make_body) {
  auto& entry = report.entry;
  const auto sequence = entry.application ? entry.application->sequence : 0;
  const auto posted =
      co_await post(report, {.part = std::move(part),
                             .subject = report.key,
                             .id = event_id(entry.uid, kApplicationPart, sequence, content),
                             .sequence = sequence,
                             .body = {},
                             .make_body = std::move(make_body),
                             .refused_before = entry.is_refused({}, content)});
  if (!posted) co_return std::unexpected(posted.error());
  if (posted->kind == Delivered::Kind::put_off) {
    report.put_off = posted->error;
  } else if (posted->kind == Delivered::Kind::refused) {
    entry.refuse(posted->error.http_status, wall_now(), posted->error.message);
  } else {
    entry.acknowledge(content);
  }
  co_return Result<void>();
}

Task<Result<void>> ApplicationReporter::post_resources(Report& report, Events events,
                                                       const Difference& due, WallTime now) {
  const auto count = due.changed.size() + due.gone.size();
  auto& entry = report.entry;
  std::size_t next = 0;
  std::size_t taken = 0;
  Result<void> outcome;
  // Posts the next event until none is left. A failure does not stop the other events.
  const auto post_some = [&]() -> Task<> {
    while (next < count) {
      const auto index = next++;
      const bool gone = index >= due.changed.size();
      const auto& id =
          gone ? due.gone[index - due.changed.size()] : events->resources()[due.changed[index]].id;
      const auto content = gone ? kGone : events->resources()[due.changed[index]].digest;
      const auto identity = id.identity();
      const auto sequence = entry.resources.at(identity).last.sequence;
      Delivery::MakeBody make_body = [events, id, now] { return events->gone_event(id, now); };
      if (!gone) {
        make_body = [events, at = due.changed[index], now] {
          return events->resource_event(at, now);
        };
      }
      const auto posted =
          co_await post(report, {.part = gone ? "resource_gone" : "resource",
                                 .subject = report.key + " " + identity,
                                 .id = event_id(entry.uid, part_of(id), sequence, content),
                                 .sequence = sequence,
                                 .body = {},
                                 .make_body = std::move(make_body),
                                 .refused_before = entry.is_refused(identity, content)});
      if (!posted) {
        if (outcome) outcome = std::unexpected(posted.error());
        continue;
      }
      if (posted->kind == Delivered::Kind::put_off) {
        report.put_off = posted->error;
        continue;
      }
      if (posted->kind == Delivered::Kind::refused) {
        entry.refuse(id, posted->error.http_status, wall_now(), posted->error.message);
      } else if (gone) {
        entry.forget(id);
      } else {
        entry.acknowledge(id, content);
      }
      if (++taken % kStoreEvery == 0) store(report);
    }
  };
  const auto workers = std::min(count, options_.resource_workers);
  const auto poster = [&] {
    return asio::co_spawn(executor_, spawnable(post_some()), asio::deferred);
  };
  std::vector<decltype(poster())> posters;
  if (workers == 1) {
    co_await post_some();
  } else if (workers > 1) {
    for (std::size_t i = 0; i < workers; ++i) posters.push_back(poster());
    auto group = asio::experimental::make_parallel_group(std::move(posters));
    auto [order, failures] =
        co_await group.async_wait(asio::experimental::wait_for_all(), use_task);
    for (const auto& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }
  if (outcome && report.put_off) outcome = std::unexpected(*report.put_off);
  co_return outcome;
}

Task<Result<Delivered>> ApplicationReporter::post(const Report& report, Delivery::Event event) {
  event.allowed = [this, grant = report.grant] { return changes_.holds(grant); };
  event.large = report.large;
  event.reduce = reduced_event;
  co_return co_await delivery_.deliver(std::move(event));
}

Task<Result<bool>> ApplicationReporter::tree_changed(std::string key, std::string project) {
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

void ApplicationReporter::count_error(const Error& error) {
  metrics_
      .counter("gitops_event_reporter_errors_total", "Failed attempts by peer and kind",
               {{"peer", "argocd"}, {"code", std::string(to_string(error.code))}})
      .Increment();
}

Error ApplicationReporter::lasting(Error error, unsigned failures) const {
  if (failures >= options_.max_failures) error.retry_after = options_.gap_retry;
  return error;
}

}  // namespace gitops::reporter
