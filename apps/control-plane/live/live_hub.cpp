#include "control-plane/live/live_hub.hpp"

#include <algorithm>
#include <utility>

#include "common/core/json_text.hpp"
#include "control-plane/views/view_json.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxTopics = 32;
constexpr std::size_t kMaxUid = 128;
constexpr std::string_view kIndex = "index";
constexpr std::string_view kRuntimes = "runtimes";
constexpr std::string_view kApplication = "app:";

bool names(const std::vector<std::string>& uids, std::string_view uid) {
  return !uid.empty() && std::ranges::find(uids, uid) != uids.end();
}

bool is_wanted(const LiveTopics& topics, bool is_application, std::string_view uid,
               std::string_view owner_uid) {
  return topics.everything || (topics.index && is_application) || names(topics.applications, uid) ||
         names(topics.applications, owner_uid);
}

// Returns the topics of a row for a subscriber, as the wire spells them.
std::vector<std::string> topics_of(const LiveSubscriber& subscriber, const LiveRow& row) {
  std::vector<std::string> topics;
  if (subscriber.topics().index && row.is_listed) topics.emplace_back(kIndex);
  for (const auto& uid : subscriber.topics().applications) {
    if (uid == row.state.uid || uid == row.owner_uid) {
      topics.push_back(std::string(kApplication) + uid);
    }
  }
  return topics;
}

// Collects rows into events of a bounded size.
class Patches {
 public:
  explicit Patches(std::size_t rows) : rows_per_event_(rows) {}
  void add(std::string_view topic, std::string_view members) {
    text_ += text_.empty() ? "{\"rows\":[" : ",";
    append_live_row(text_, topic, members);
    if (++rows_ == rows_per_event_) finish();
  }
  void finish() {
    if (!text_.empty()) events_.push_back({.event = "patch", .data = text_ + "]}"});
    text_.clear();
    rows_ = 0;
  }
  std::vector<http::ServerSentEvent>& events() { return events_; }

 private:
  std::size_t rows_per_event_;
  std::size_t rows_ = 0;
  std::string text_;
  std::vector<http::ServerSentEvent> events_;
};

std::string gone_data(std::string_view topic, const std::vector<std::string>& uids) {
  return object_json([&](ObjectJson& out) {
    out.text("topic", topic);
    out.array("uids", [&](ArrayJson& items) {
      for (const auto& uid : uids) items.text(uid);
    });
  });
}

void add_gone(std::vector<http::ServerSentEvent>& out,
              const std::map<std::string, std::vector<std::string>>& gone) {
  for (const auto& [topic, uids] : gone) {
    out.push_back({.event = "gone", .data = gone_data(topic, uids)});
  }
}

}  // namespace

Result<LiveTopics> read_topics(std::string_view text) {
  LiveTopics topics;
  std::size_t count = 0;
  while (!text.empty()) {
    const auto item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    if (++count > kMaxTopics) {
      return fail(ErrorCode::invalid_argument, "a stream has at most 32 topics");
    }
    if (item == kIndex) {
      topics.index = true;
    } else if (item == kRuntimes) {
      topics.runtimes = true;
    } else if (item.starts_with(kApplication) && item.size() > kApplication.size() &&
               item.size() <= kApplication.size() + kMaxUid) {
      topics.applications.emplace_back(item.substr(kApplication.size()));
    } else {
      return fail(ErrorCode::invalid_argument,
                  "the topics are index, runtimes and app:UID, separated by commas");
    }
  }
  if (topics.empty()) {
    return fail(ErrorCode::invalid_argument,
                "name topics: index, runtimes and app:UID, separated by commas");
  }
  return topics;
}

bool LiveSubscriber::has_news() const {
  const bool is_told = stale_since_.has_value() == knows_stale_;
  return needs_reset_ || !is_told || !objects_.empty() || !runtimes_.empty();
}

Result<std::shared_ptr<LiveSubscriber>> LiveHub::add(LiveTopics topics, CallerPtr caller,
                                                     std::function<void()> wake) {
  const auto& user = caller->user_id;
  const auto found = of_user_.find(user);
  const bool has_many = found != of_user_.end() && found->second >= options_.per_user;
  if (has_many || subscribers_.size() >= options_.whole) {
    return std::unexpected(
        Error{.code = ErrorCode::too_many_requests,
              .message = has_many ? "too many streams of this user" : "too many streams",
              .retry_after = std::chrono::seconds(10),
              .http_status = 429});
  }
  ++of_user_[user];
  auto subscriber = std::make_shared<LiveSubscriber>();
  subscriber->topics_ = std::move(topics);
  subscriber->permissions_.caller = std::move(caller);
  subscriber->wake_ = std::move(wake);
  subscriber->stale_since_ = stale_since_;
  subscribers_.push_back(subscriber);
  return subscriber;
}

void LiveHub::begin(LiveSubscriber& subscriber, LivePermissions permissions,
                    std::optional<std::string> cursor) {
  if (!cursor) return set_permissions(subscriber, std::move(permissions));
  subscriber.permissions_ = std::move(permissions);
  subscriber.cursor_ = std::move(*cursor);
}

void LiveHub::set_permissions(LiveSubscriber& subscriber, LivePermissions permissions) {
  subscriber.permissions_ = std::move(permissions);
  reset(subscriber);
}

void LiveHub::remove(const std::shared_ptr<LiveSubscriber>& subscriber) {
  if (std::erase(subscribers_, subscriber) == 0) return;
  const auto found = of_user_.find(subscriber->permissions_.caller->user_id);
  if (--found->second == 0) of_user_.erase(found);
}

bool LiveHub::wants(const OutboxChange& change) const {
  const bool is_application = change.kind == "Application";
  return std::ranges::any_of(subscribers_, [&](const auto& subscriber) {
    return subscriber->permissions_.caller->account->number == change.account &&
           is_wanted(subscriber->topics_, is_application, change.uid, change.owner_uid);
  });
}

std::set<std::int64_t> LiveHub::accounts_with_runtimes() const {
  std::set<std::int64_t> accounts;
  for (const auto& subscriber : subscribers_) {
    if (subscriber->topics_.runtimes)
      accounts.insert(subscriber->permissions_.caller->account->number);
  }
  return accounts;
}

void LiveHub::offer(const std::shared_ptr<const LiveRow>& row) {
  for (const auto& subscriber : subscribers_) {
    if (subscriber->permissions_.caller->account->number != row->account ||
        !is_wanted(subscriber->topics_, row->is_listed, row->state.uid, row->owner_uid)) {
      continue;
    }
    subscriber->objects_.insert_or_assign(row->state.id, row);
    if (subscriber->objects_.size() > options_.max_changed) reset(*subscriber);
    subscriber->wake_();
  }
}

void LiveHub::offer_missed(LiveSubscriber& subscriber, const std::shared_ptr<const LiveRow>& row) {
  subscriber.objects_.try_emplace(row->state.id, row);
}

void LiveHub::offer_runtime(std::int64_t account, const std::string& name,
                            const std::shared_ptr<const std::string>& members) {
  for (const auto& subscriber : subscribers_) {
    if (!subscriber->topics_.runtimes ||
        subscriber->permissions_.caller->account->number != account) {
      continue;
    }
    subscriber->runtimes_.insert_or_assign(name, members);
    subscriber->wake_();
  }
}

void LiveHub::reset(LiveSubscriber& subscriber) {
  subscriber.objects_.clear();
  subscriber.runtimes_.clear();
  subscriber.shown_.clear();
  subscriber.needs_reset_ = true;
  subscriber.wake_();
}

void LiveHub::reset_all() {
  for (const auto& subscriber : subscribers_) reset(*subscriber);
}

void LiveHub::check(std::string_view subject) {
  for (const auto& subscriber : subscribers_) {
    const auto& caller = *subscriber->permissions_.caller;
    const bool is_meant = subject.empty() || subject == caller.account->id ||
                          subject == caller.user_id || subject == caller.credential_id;
    if (!is_meant) continue;
    subscriber->needs_check_ = true;
    subscriber->wake_();
  }
}

bool LiveHub::take_check(LiveSubscriber& subscriber) {
  return std::exchange(subscriber.needs_check_, false);
}

void LiveHub::set_stale(Micros since) {
  stale_since_ = since;
  for (const auto& subscriber : subscribers_) {
    subscriber->stale_since_ = since;
    subscriber->wake_();
  }
}

void LiveHub::set_fresh() {
  stale_since_.reset();
  for (const auto& subscriber : subscribers_) {
    subscriber->stale_since_.reset();
    subscriber->wake_();
  }
}

bool LiveHub::may_see(const LiveSubscriber& subscriber, const LiveRow& row) {
  const auto& permissions = subscriber.permissions_;
  if (permissions.visibility.is_everything()) return true;
  if (!row.is_application()) return permissions.applications.contains(row.owner_uid);
  if (row.state.key.name.empty()) return false;  // its row was removed, so no rule names it
  JsonParser parser;
  const auto parsed = parser.parse(row.view, "an Application");
  return permissions.visibility.shows(row.state, parsed ? *parsed : JsonView());
}

std::vector<http::ServerSentEvent> LiveHub::take(LiveSubscriber& subscriber) {
  std::vector<http::ServerSentEvent> events;
  if (subscriber.stale_since_.has_value() != subscriber.knows_stale_) {
    subscriber.knows_stale_ = subscriber.stale_since_.has_value();
    if (subscriber.stale_since_) {
      events.push_back({.event = "stale", .data = object_json([&](ObjectJson& out) {
                                            out.text("since", time_text(*subscriber.stale_since_));
                                          })});
    } else {
      events.push_back({.event = "fresh", .data = "{}"});
    }
  }
  if (std::exchange(subscriber.needs_reset_, false)) {
    // Rows that follow were read later than the page will be, or they are equal to it.
    subscriber.cursor_ = cursor_;
    events.push_back({.event = "reset", .data = "{}"});
  }
  for (auto& event : events) event.id = subscriber.cursor_;
  std::vector<http::ServerSentEvent> rows;
  add_objects(subscriber, rows);
  add_runtimes(subscriber, rows);
  for (auto& event : rows) event.id = subscriber.cursor_;
  // The last event of the rows is the one that completes them.
  subscriber.cursor_ = cursor_;
  if (!rows.empty()) rows.back().id = cursor_;
  std::ranges::move(rows, std::back_inserter(events));
  return events;
}

std::set<std::string> LiveHub::follow_applications(LiveSubscriber& subscriber) {
  std::set<std::string> hidden;
  auto& permissions = subscriber.permissions_;
  if (permissions.visibility.is_everything()) return hidden;
  for (const auto& [id, row] : subscriber.objects_) {
    const auto& state = row->state;
    // A removed row has no name that a rule could be asked about.
    const bool is_its_own = row->is_listed && !state.key.name.empty() &&
                            names(subscriber.topics_.applications, state.uid);
    if (!is_its_own) continue;
    if (may_see(subscriber, *row)) {
      permissions.applications.insert(state.uid);
    } else if (permissions.applications.erase(state.uid) > 0) {
      hidden.insert(state.uid);
    }
  }
  return hidden;
}

void LiveHub::add_objects(LiveSubscriber& subscriber, std::vector<http::ServerSentEvent>& out) {
  const auto hidden = follow_applications(subscriber);
  Patches patches(options_.rows_per_event);
  std::map<std::string, std::vector<std::string>> gone;  // uids by topic
  for (const auto& [id, row] : std::exchange(subscriber.objects_, {})) {
    const auto topics = topics_of(subscriber, *row);
    const auto shown = subscriber.shown_.find(id);
    const bool was_sent = shown != subscriber.shown_.end();
    const bool was_shown = was_sent || hidden.contains(row->state.uid);
    const bool is_visible = may_see(subscriber, *row);
    for (const auto& topic : topics) {
      // Another object of that name has taken the place of the one that was shown.
      if (was_sent && shown->second != row->state.uid && !shown->second.empty()) {
        gone[topic].push_back(shown->second);
      }
      if (is_visible && !row->is_gone()) {
        patches.add(topic, row->members);
      } else if ((is_visible || was_shown) && !row->state.uid.empty()) {
        gone[topic].push_back(row->state.uid);
      }
    }
    if (is_visible && !row->is_gone()) {
      subscriber.shown_.insert_or_assign(id, row->state.uid);
    } else if (was_sent) {
      subscriber.shown_.erase(shown);
    }
  }
  if (subscriber.shown_.size() > options_.max_changed) subscriber.shown_.clear();
  patches.finish();
  add_gone(out, gone);
  std::ranges::move(patches.events(), std::back_inserter(out));
}

void LiveHub::add_runtimes(LiveSubscriber& subscriber, std::vector<http::ServerSentEvent>& out) {
  Patches patches(options_.rows_per_event);
  std::map<std::string, std::vector<std::string>> gone;
  for (const auto& [name, members] : std::exchange(subscriber.runtimes_, {})) {
    if (members == nullptr) {
      gone[std::string(kRuntimes)].push_back(name);
    } else {
      patches.add(kRuntimes, *members);
    }
  }
  patches.finish();
  add_gone(out, gone);
  std::ranges::move(patches.events(), std::back_inserter(out));
}

LiveHub::References LiveHub::take_references(LiveSubscriber& subscriber) {
  References taken{.is_reset = std::exchange(subscriber.needs_reset_, false)};
  subscriber.knows_stale_ = subscriber.stale_since_.has_value();
  for (auto& [id, row] : std::exchange(subscriber.objects_, {})) {
    if (may_see(subscriber, *row)) taken.rows.push_back(std::move(row));
  }
  return taken;
}

}  // namespace gitops::control_plane_server
