#include "control-plane/live/live_updates.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "control-plane/accounts/revocations.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr auto kReadLimit = std::chrono::seconds(2);
constexpr auto kRetry = std::chrono::milliseconds(500);
constexpr Micros kSeenStep =
    10LL * 1'000'000;  // a smaller step of a runtime's last contact is no change
constexpr std::size_t kMaxFollowed = 1'000;  // spans
constexpr auto kFollowFor = std::chrono::seconds(10);
constexpr std::int64_t kMaxMissed = 5'000;  // changes of one stream that begins again
constexpr Micros kPermissionWindow = 15LL * 60 * 1'000'000;  // longer than revocations are kept

// Reads what a caller may see of the topics.
Result<LivePermissions> read_permissions(store::Connection& connection, const CallerPtr& caller,
                                         const LiveTopics& topics) {
  auto visibility = visibility_of(connection, *caller);
  if (!visibility) return std::unexpected(std::move(visibility.error()));
  LivePermissions permissions{.caller = caller, .visibility = std::move(*visibility)};
  if (permissions.visibility.is_everything()) return permissions;
  for (const auto& uid : topics.applications) {
    const auto found =
        find_object_by_uid(connection, caller->account->number, "Application", uid, BodyUse::read);
    if (!found) return std::unexpected(found.error());
    if (!*found) continue;
    ParsedBody body;
    body.read((*found)->body);
    if (permissions.visibility.shows((*found)->state, body.live()))
      permissions.applications.insert(uid);
  }
  return permissions;
}

// Reads the rows of changed objects. One that is not there any more gets a row that says so.
Result<std::vector<std::shared_ptr<const LiveRow>>> read_rows(
    store::Connection& connection, std::int64_t account,
    const std::map<std::int64_t, OutboxChange>& changes) {
  std::vector<std::int64_t> ids;
  for (const auto& [id, change] : changes) ids.push_back(id);
  const auto found = objects_of_ids(connection, account, ids, BodyUse::read);
  if (!found) return std::unexpected(found.error());
  std::vector<std::shared_ptr<const LiveRow>> rows;
  std::set<std::int64_t> present;
  for (const auto& row : *found) {
    present.insert(row.state.id);
    rows.push_back(std::make_shared<const LiveRow>(live_row(account, row)));
  }
  for (const auto& [id, change] : changes) {
    if (present.contains(id)) continue;
    rows.push_back(std::make_shared<const LiveRow>(removed_row(change)));
  }
  return rows;
}

bool is_of(const OutboxChange& change, std::int64_t account, const LiveTopics& topics) {
  if (change.account != account) return false;
  const auto names = [&topics](const std::string& uid) {
    return !uid.empty() && std::ranges::find(topics.applications, uid) != topics.applications.end();
  };
  return (topics.index && change.kind == "Application") || names(change.uid) ||
         names(change.owner_uid);
}

}  // namespace

// Rows that a stream that begins again has missed.
struct LiveUpdates::CatchUp {
  LivePermissions permissions;
  bool is_reset = true;
  std::vector<std::shared_ptr<const LiveRow>> rows = {};
};

LiveUpdates::LiveUpdates(const Executor& executor, store::Database& database, Metrics& metrics,
                         Options options, std::function<void(const std::string&)> revoked)
    : database_(database),
      options_(std::move(options)),
      executor_(executor),
      hub_(options_.hub),
      changed_(executor),
      subscribers_(metrics.gauge("gitops_control_plane_live_subscribers", "Open live streams")),
      rows_(metrics.counter("gitops_control_plane_live_rows_total",
                            "Rows of changed objects that were read for live streams")),
      resets_(
          metrics.counter("gitops_control_plane_live_resets_total",
                          "Times at which all live streams were told to read everything again")),
      feed_(executor, database, metrics, options_.feed,
            {.is_wanted = [this] { return !hub_.empty(); },
             .changed =
                 [this](std::vector<OutboxChange> changes, const ChangeCursor& cursor) {
                   take_changes(std::move(changes), cursor);
                 },
             .missed = [this](const ChangeCursor& cursor) { take_missed(cursor); },
             .revoked = std::move(revoked),
             .stale = [this](Micros since) { hub_.set_stale(since); },
             .fresh = [this] { hub_.set_fresh(); }}),
      tasks_(executor) {}

LiveUpdates::~LiveUpdates() = default;

void LiveUpdates::start() {
  feed_.start();
  tasks_.spawn("live objects", [this] { return read_objects(); });
  tasks_.spawn("live runtimes", [this] { return read_runtimes(); });
}

Task<> LiveUpdates::stop() {
  co_await feed_.stop();
  tasks_.cancel();
  co_await tasks_.join();
}

void LiveUpdates::follow(const OutboxChange& change, const SpanContext& trace) {
  if (!trace.is_sampled() || followed_.size() >= kMaxFollowed || !hub_.wants(change)) return;
  followed_.insert_or_assign(change.uid, Followed{.span = trace.start("update open pages"),
                                                  .until = deadline_after(kFollowFor)});
}

void LiveUpdates::take_changes(std::vector<OutboxChange> changes, const ChangeCursor& cursor) {
  ++generation_;
  for (auto& change : changes) {
    if (!hub_.wants(change)) continue;
    const auto object = change.object;
    auto& waiting = waiting_.try_emplace(object, Waiting{.first = generation_}).first->second;
    waiting.last = generation_;
    waiting.change = std::move(change);
  }
  if (waiting_.size() > options_.hub.max_changed) return take_missed(cursor);
  cursors_.emplace_back(generation_, to_string(cursor));
  settle();
  if (!waiting_.empty()) changed_.notify_all();
}

void LiveUpdates::take_missed(const ChangeCursor& cursor) {
  waiting_.clear();
  cursors_.clear();
  runtimes_.clear();
  hub_.set_cursor(to_string(cursor));
  if (hub_.empty()) return;
  resets_.Increment();
  hub_.reset_all();
}

// Tells the hub the newest cursor whose changes were all read.
void LiveUpdates::settle() {
  auto unread = generation_ + 1;
  for (const auto& [object, waiting] : waiting_) unread = std::min(unread, waiting.first);
  while (!cursors_.empty() && cursors_.front().first < unread) {
    hub_.set_cursor(std::move(cursors_.front().second));
    cursors_.pop_front();
  }
}

// Returns the waiting objects by account that were not read within the last quarter of a second.
std::map<std::int64_t, LiveUpdates::Batch> LiveUpdates::due_objects(Clock::time_point now) const {
  Batch all;
  for (const auto& [object, waiting] : waiting_) {
    const auto before = read_at_.find(object);
    if (before != read_at_.end() && now - before->second < options_.per_object) continue;
    all.emplace_back(object, waiting);
  }
  // Those that have waited longest come first.
  std::ranges::sort(all, {}, [](const auto& entry) { return entry.second.first; });
  if (all.size() > options_.rows_per_read) all.resize(options_.rows_per_read);
  std::map<std::int64_t, Batch> due;
  for (auto& entry : all) due[entry.second.change.account].push_back(std::move(entry));
  return due;
}

Task<> LiveUpdates::read_objects() {
  while (true) {
    while (waiting_.empty()) co_await changed_.wait();
    const auto began = Clock::now();
    std::erase_if(read_at_,
                  [&](const auto& entry) { return began - entry.second >= options_.per_object; });
    bool is_read = true;
    for (auto& [account, batch] : due_objects(began)) {
      is_read = co_await read_batch(account, std::move(batch)) && is_read;
    }
    settle();
    co_await sleep_until(is_read ? began + options_.round : deadline_after(kRetry));
  }
}

// Returns false when the rows cannot be read now; they go on waiting.
Task<bool> LiveUpdates::read_batch(std::int64_t account, Batch batch) {
  std::map<std::int64_t, OutboxChange> changes;
  for (const auto& [object, waiting] : batch) changes.emplace(object, waiting.change);
  const auto rows = co_await database_.read(deadline_after(kReadLimit),
                                            [account, changes](store::Connection& connection) {
                                              return read_rows(connection, account, changes);
                                            });
  if (!rows) co_return false;
  rows_.Increment(static_cast<double>(rows->size()));
  const auto now = Clock::now();
  for (const auto& [object, read] : batch) {
    read_at_.insert_or_assign(object, now);
    const auto waiting = waiting_.find(object);
    // A change that was heard of during the read may be later than it.
    if (waiting == waiting_.end()) continue;
    if (waiting->second.last == read.last) {
      waiting_.erase(waiting);
    } else {
      waiting->second.first = read.last + 1;
    }
  }
  for (const auto& row : *rows) {
    hub_.offer(row);
    if (!followed_.empty()) followed_.erase(row->state.uid);
  }
  co_return true;
}

Task<> LiveUpdates::read_runtimes() {
  while (true) {
    co_await sleep_for(options_.runtimes);
    subscribers_.Set(static_cast<double>(hub_.size()));
    // A row that could not be read, or that nobody wants any more.
    std::erase_if(followed_, [](const auto& entry) { return Clock::now() >= entry.second.until; });
    const auto accounts = hub_.accounts_with_runtimes();
    std::erase_if(runtimes_,
                  [&accounts](const auto& entry) { return !accounts.contains(entry.first); });
    for (const auto account : accounts) co_await compare_runtimes(account);
  }
}

// Tells what has changed of the runtimes of an account.
Task<> LiveUpdates::compare_runtimes(std::int64_t account) {
  const auto found = co_await database_.read(
      deadline_after(kReadLimit),
      [account](store::Connection& connection) { return live_runtimes(connection, account); });
  if (!found) co_return;
  auto& known = runtimes_[account];
  std::map<std::string, LiveRuntime> now;
  for (const auto& runtime : *found) {
    const auto before = known.find(runtime.name);
    if (before != known.end()) {
      auto same = before->second;
      if (runtime.seen_at - same.seen_at < kSeenStep) same.seen_at = runtime.seen_at;
      if (same == runtime) {
        now.insert(*before);
        continue;
      }
    }
    now.emplace(runtime.name, runtime);
    hub_.offer_runtime(account, runtime.name,
                       std::make_shared<const std::string>(runtime_members(runtime)));
  }
  for (const auto& [name, runtime] : known) {
    if (!now.contains(name)) hub_.offer_runtime(account, name, nullptr);
  }
  known = std::move(now);
}

StatusEntry LiveUpdates::status() const {
  StatusEntry entry{.name = "live updates",
                    .state = feed_.has_begun() ? StatusState::ok : StatusState::pending,
                    .message = ""};
  if (feed_.is_stale()) {
    entry.state = StatusState::unavailable;
    entry.message = "changes cannot be read: open pages are told that they may be old";
  }
  entry.add_count("streams", hub_.size());
  return entry;
}

LiveUpdates::Subscription::Subscription(LiveUpdates& updates,
                                        std::shared_ptr<LiveSubscriber> subscriber,
                                        std::shared_ptr<gitops::Event> woken)
    : updates_(&updates), subscriber_(std::move(subscriber)), woken_(std::move(woken)) {}

LiveUpdates::Subscription::~Subscription() {
  if (subscriber_) updates_->hub_.remove(subscriber_);
}

Task<> LiveUpdates::Subscription::wait(Deadline deadline) const {
  while (!subscriber_->has_news() && !subscriber_->needs_check()) {
    if (!co_await woken_->wait(deadline)) co_return;
  }
}

Task<Result<LiveUpdates::CatchUp>> LiveUpdates::catch_up(CallerPtr caller, LiveTopics topics,
                                                         std::string cursor, Deadline deadline) {
  co_return co_await database_.read(
      deadline,
      [caller, topics, since = read_cursor(cursor),
       now = micros_at(wall_now())](store::Connection& connection) -> Result<CatchUp> {
        auto permissions = read_permissions(connection, caller, topics);
        if (!permissions) return std::unexpected(std::move(permissions.error()));
        CatchUp caught{.permissions = std::move(*permissions)};
        if (!since) return caught;
        const auto heads = outbox_heads(connection);
        if (!heads) return std::unexpected(heads.error());
        const auto plan = plan_reading(*since, *heads, Vanished::are_missed);
        if (plan.has_gap || plan.changes > kMaxMissed) return caught;
        // The time of the cursor is not known. When permissions have changed lately, the page may show what is hidden now.
        const auto revoked = revocations_since(connection, now - kPermissionWindow);
        if (!revoked) return std::unexpected(revoked.error());
        if (std::ranges::any_of(*revoked, [&](const auto& one) {
              return one.subject == caller->account->id || one.subject == caller->user_id;
            })) {
          return caught;
        }
        auto moved = *since;
        const auto changes = read_changes(connection, plan, kMaxMissed, moved);
        if (!changes) return std::unexpected(changes.error());
        std::map<std::int64_t, OutboxChange> wanted;
        for (const auto& change : *changes) {
          if (is_of(change, caller->account->number, topics)) wanted[change.object] = change;
        }
        auto rows = read_rows(connection, caller->account->number, wanted);
        if (!rows) return std::unexpected(std::move(rows.error()));
        caught.rows = std::move(*rows);
        caught.is_reset = false;
        return caught;
      });
}

Task<Result<LiveUpdates::Subscription>> LiveUpdates::subscribe(CallerPtr caller, LiveTopics topics,
                                                               std::string cursor,
                                                               Deadline deadline) {
  const auto woken = std::make_shared<gitops::Event>(executor_);
  // It is there before the rows are read, so that no change falls between the two.
  auto added = hub_.add(topics, caller, [woken] { woken->notify_all(); });
  if (!added) co_return std::unexpected(std::move(added.error()));
  Subscription subscription(*this, std::move(*added), woken);
  auto& subscriber = subscription.subscriber();
  auto caught = co_await catch_up(std::move(caller), std::move(topics), cursor, deadline);
  if (!caught) co_return std::unexpected(std::move(caught.error()));
  hub_.begin(subscriber, std::move(caught->permissions),
             caught->is_reset ? std::nullopt : std::optional(std::move(cursor)));
  for (const auto& row : caught->rows) hub_.offer_missed(subscriber, row);
  // All of its runtimes are told to a stream that begins again.
  if (!caught->is_reset) runtimes_.erase(subscriber.permissions().caller->account->number);
  co_return std::move(subscription);
}

Task<Result<void>> LiveUpdates::authorise(LiveSubscriber& subscriber, CallerPtr caller,
                                          Deadline deadline) {
  auto permissions = co_await database_.read(
      deadline, [caller, topics = subscriber.topics()](store::Connection& connection) {
        return read_permissions(connection, caller, topics);
      });
  if (!permissions) co_return std::unexpected(std::move(permissions.error()));
  hub_.set_permissions(subscriber, std::move(*permissions));
  co_return Result<void>();
}

}  // namespace gitops::control_plane_server
