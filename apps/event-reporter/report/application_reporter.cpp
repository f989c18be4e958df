#include "event-reporter/report/application_reporter.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "event-reporter/event/app_view.hpp"
#include "event-reporter/event/event_body.hpp"
#include "event-reporter/event/manifest.hpp"

namespace gitops::reporter {
namespace {

// Acknowledged events of one application between two writes to the ledger.
constexpr std::size_t kStoreEvery = 100;

// The id of an event (docs/events.md, "Ids"), by which a receiver drops duplicates.
std::string event_id(const ApplicationEvents& events, std::string_view version,
                     std::string_view part, std::string_view content) {
  std::string id(events.uid());
  id.append("/").append(version).append("/").append(part);
  return id.append("/").append(content);
}

// The part of a resource in event ids. Escaped, because names come from the cluster.
std::string part_of(const ResourceId& id) {
  std::string out;
  for (const auto& piece : {id.group, id.version, id.kind, id.ns, id.name}) {
    if (!out.empty()) out += ':';
    out += percent_encode(piece);
  }
  return out;
}

}  // namespace

k8s::ObjectKey application_key(std::string_view key) {
  const auto slash = key.find('/');
  return {.ns = std::string(key.substr(0, slash)), .name = std::string(key.substr(slash + 1))};
}

ApplicationReporter::ApplicationReporter(const Executor& executor, Gatherer& gatherer,
                                         Ledger& ledger, Delivery& delivery, Options options,
                                         Metrics& metrics)
    : executor_(executor),
      gatherer_(gatherer),
      ledger_(ledger),
      delivery_(delivery),
      options_(options),
      metrics_(metrics) {}

Task<Result<bool>> ApplicationReporter::report_live(Live live) {
  const auto& key = live.key;
  auto gathered = co_await gatherer_.gather(application_key(key), std::move(live.text));
  if (!gathered) {
    if (gathered.error().code == ErrorCode::not_found) co_return Result<bool>(false);
    count_error(gathered.error());
    co_return std::unexpected(gathered.error());
  }
  const Error gap{.code = ErrorCode::unavailable, .message = gathered->gap};
  if (!gap.message.empty() && live.failures < options_.patience) {
    count_error(gap);
    co_return std::unexpected(gap);  // retry before reporting without the missing answer
  }
  std::optional<Digest> tree;
  if (gathered->snapshot.tree) tree = tree_digest(*gathered->snapshot.tree);
  const auto events = ApplicationEvents::make(
      std::move(gathered->snapshot), std::move(gathered->settings),
      options_.resend_on_revision ? DigestScope::resource_and_revision : DigestScope::resource);
  if (!events) {
    count_error(events.error());
    co_return std::unexpected(lasting(events.error(), live.failures));
  }
  const auto version = events->resource_version();
  if (newest_.is_outdated(key, version)) co_return Result<bool>(true);
  newest_.note(key, events->uid(), version);

  auto loaded = co_await ledger_.load(key);
  if (!loaded) co_return std::unexpected(loaded.error());
  auto entry = std::move(*loaded);
  if (!entry.uid.empty() && entry.uid != events->uid()) {
    // A predecessor was deleted without a watch event.
    const auto gone =
        co_await report_gone(key, application_stub(application_key(key), entry.uid, ""));
    if (!gone) co_return std::unexpected(gone.error());
    entry = {};
  }
  entry.belong_to(events->uid());
  if (const auto adopted = co_await adopt(key, entry); !adopted) {
    co_return std::unexpected(adopted.error());
  }
  const auto now = wall_now();
  const bool with_resources = events->resources_known() && !live.superseded;
  const auto due = diff(entry, events->uid(), events->application_digest(),
                        with_resources ? std::optional(events->resources()) : std::nullopt);
  // Until all events are acknowledged, a restart reports this application again.
  entry.change.reset();
  co_await announce(key, entry, *events, due);
  if (due.application || live.heartbeat) {
    const auto& digest = events->application_digest();
    const auto posted = co_await post("application", key,
                                      event_id(*events, version, "application", to_hex(digest, 4)),
                                      events->application_event(now));
    if (!posted) co_return std::unexpected(posted.error());
    entry.application = digest;
    ledger_.store(key, entry);
  }
  const auto posted = co_await post_resources(key, *events, version, entry, due, now);
  if (posted && gap.message.empty() && !live.superseded) {
    entry.change = events->change();
    entry.tree = tree;
  }
  ledger_.store(key, entry);
  if (!posted) co_return std::unexpected(posted.error());
  if (!gap.message.empty()) co_return std::unexpected(lasting(gap, live.failures));
  co_return Result<bool>(true);
}

Task<Result<void>> ApplicationReporter::report_gone(std::string key, std::string tombstone) {
  auto app = AppView::parse(std::move(tombstone));
  // A tombstone that cannot be read still has a name.
  if (!app) app = AppView::parse(application_stub(application_key(key), "", ""));
  if (!app) co_return std::unexpected(app.error());
  auto gathered = co_await gatherer_.gather_gone(std::move(*app));
  if (!gathered) co_return std::unexpected(gathered.error());
  const auto events =
      ApplicationEvents::make(std::move(gathered->snapshot), std::move(gathered->settings));
  if (!events) co_return std::unexpected(events.error());

  auto loaded = co_await ledger_.load(key);
  if (!loaded) co_return std::unexpected(loaded.error());
  auto entry = std::move(*loaded);
  const bool own = entry.uid == events->uid() || events->uid().empty();
  if (!own) entry = {.uid = std::string(events->uid())};  // the entry is that of a successor
  const auto row = inventory_row(key, events->uid());
  if (const auto added = co_await add_inventory(row, entry); !added) {
    co_return std::unexpected(added.error());
  }
  const auto now = wall_now();
  // A list that lacks the application does not tell the version of its deletion, and the watch's last
  // state may be older than the one that was read and reported.
  const auto version = newest_.highest(key, events->uid(), events->resource_version());
  const auto posted =
      co_await post("application_gone", key, event_id(*events, version, "application", "gone"),
                    events->application_event(now));
  if (!posted) co_return std::unexpected(posted.error());
  const auto resources = co_await post_resources(
      key, *events, version, entry,
      {.application = false, .changed = {}, .gone = entry.resource_ids()}, now);
  if (resources) {
    if (own) ledger_.erase(key);
    ledger_.erase(row);
    // A successor of the same name may be known already.
    const auto* newest = newest_.uid(key);
    if (newest != nullptr && *newest == events->uid()) newest_.forget(key);
  } else {
    entry.change.reset();
    ledger_.store(own ? key : row, entry);
  }
  co_return resources;
}

// Adds the resources of the inventory's row, which another replica may have reported. False when
// there is no such row.
Task<Result<bool>> ApplicationReporter::add_inventory(const std::string& row, LedgerEntry& entry) {
  if (!ledger_.inventory().contains(row)) co_return Result<bool>(false);
  auto seen = co_await ledger_.load(row);
  if (!seen) co_return std::unexpected(seen.error());
  entry.resources.merge(std::move(seen->resources));
  co_return Result<bool>(true);
}

// Moves the inventory's row of the application into its own entry.
Task<Result<void>> ApplicationReporter::adopt(const std::string& key, LedgerEntry& entry) {
  const auto row = inventory_row(key, entry.uid);
  const auto added = co_await add_inventory(row, entry);
  if (!added) co_return std::unexpected(added.error());
  if (!*added) co_return Result<void>();
  entry.change.reset();
  ledger_.store(key, entry);
  ledger_.erase(row);
  co_return Result<void>();
}

Task<Result<void>> ApplicationReporter::report_lost_parts(std::string key, std::string text) {
  auto loaded = co_await ledger_.load(key);
  if (!loaded) co_return std::unexpected(loaded.error());
  auto entry = std::move(*loaded);
  auto app = AppView::parse(std::move(text));
  if (!app) co_return Result<void>();  // unreadable
  if (newest_.is_outdated(key, app->metadata()["resourceVersion"].text())) co_return Result<void>();
  if (!entry.uid.empty() && entry.uid != app->uid()) {
    co_return co_await report_gone(key, application_stub(application_key(key), entry.uid, ""));
  }
  std::set<std::string> present;
  for (const auto& id : app->resource_ids()) present.insert(id.identity());
  Difference due;
  for (auto& id : entry.resource_ids()) {
    if (!present.contains(id.identity())) due.gone.push_back(std::move(id));
  }
  if (due.gone.empty()) co_return Result<void>();
  auto gathered = co_await gatherer_.gather_gone(std::move(*app));
  if (!gathered) co_return std::unexpected(gathered.error());
  const auto events =
      ApplicationEvents::make(std::move(gathered->snapshot), std::move(gathered->settings));
  if (!events) co_return std::unexpected(events.error());
  const auto posted =
      co_await post_resources(key, *events, events->resource_version(), entry, due, wall_now());
  entry.change.reset();
  ledger_.store(key, entry);
  co_return posted;
}

// Removes the digests of the events that are about to be sent from the ledger, and adds new
// resources. Until an event is acknowledged it is unknown whether the control plane has it: a return
// to the previous state must be due as well, and the deletion of a new resource must be found.
Task<> ApplicationReporter::announce(const std::string& key, LedgerEntry& entry,
                                     const ApplicationEvents& events, const Difference& due) {
  if (!due.application && due.changed.empty() && due.gone.empty()) co_return;
  if (due.application) entry.application.reset();
  for (const auto index : due.changed) entry.acknowledge(events.resources()[index].id, {});
  for (const auto& id : due.gone) entry.acknowledge(id, {});
  co_await ledger_.write_ahead(key, entry);
}

Task<Result<void>> ApplicationReporter::post_resources(const std::string& key,
                                                       const ApplicationEvents& events,
                                                       std::string_view version, LedgerEntry& entry,
                                                       const Difference& due, WallTime now) {
  const auto count = due.changed.size() + due.gone.size();
  if (count == 0) co_return Result<void>();
  std::size_t next = 0;
  std::size_t taken = 0;
  Result<void> outcome;
  // Posts the next event until none is left. A failure does not stop the other events.
  const auto post_some = [&]() -> Task<> {
    while (next < count) {
      const auto index = next++;
      const bool gone = index >= due.changed.size();
      const auto& id =
          gone ? due.gone[index - due.changed.size()] : events.resources()[due.changed[index]].id;
      const auto content = gone ? "gone" : to_hex(events.resources()[due.changed[index]].digest, 4);
      const auto posted = co_await post(
          gone ? "resource_gone" : "resource", key + " " + id.identity(),
          event_id(events, version, part_of(id), content),
          gone ? events.gone_event(id, now) : events.resource_event(due.changed[index], now));
      if (!posted) {
        if (outcome) outcome = std::unexpected(posted.error());
        continue;
      }
      if (gone) {
        entry.forget(id);
      } else {
        entry.acknowledge(id, events.resources()[due.changed[index]].digest);
      }
      if (++taken % kStoreEvery == 0) ledger_.store(key, entry);
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

Task<Result<Delivered>> ApplicationReporter::post(std::string part, std::string subject,
                                                  std::string id, std::string body) {
  co_return co_await delivery_.deliver({.part = std::move(part),
                                        .subject = std::move(subject),
                                        .id = std::move(id),
                                        .body = std::move(body),
                                        .reduce = reduced_event});
}

Task<Result<bool>> ApplicationReporter::tree_changed(std::string key, std::string project) {
  const auto entry = co_await ledger_.load(key);
  if (!entry) co_return std::unexpected(entry.error());
  const auto tree = co_await gatherer_.tree(application_key(key), std::move(project));
  if (!tree) co_return std::unexpected(tree.error());
  simdjson::dom::parser parser;
  const bool usable = parse_object(parser, *tree, "the answer of resource-tree").has_value();
  co_return Result<bool>(usable && entry->tree != tree_digest(*tree));
}

void ApplicationReporter::count_error(const Error& error) {
  metrics_
      .counter("gitops_event_reporter_errors_total", "Failed attempts by peer and kind",
               {{"peer", "argocd"}, {"code", std::string(to_string(error.code))}})
      .Increment();
}

Error ApplicationReporter::lasting(Error error, unsigned failures) const {
  if (failures >= options_.patience) error.retry_after = options_.gap_retry;
  return error;
}

}  // namespace gitops::reporter
