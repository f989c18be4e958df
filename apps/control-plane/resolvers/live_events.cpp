#include "control-plane/resolvers/live_events.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/core/time.hpp"
#include "control-plane/live/live_updates.hpp"
#include "control-plane/views/view_json.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;

constexpr auto kAuthoriseLimit = std::chrono::seconds(5);

std::string_view entity_type(const ObjectState& state) {
  if (state.key.kind == "Application" && state.entity == "git-source") return "GitSource";
  if (state.key.kind == "Application" && state.entity == "component") return "Component";
  return state.key.kind;
}

// A null row is RESET.
std::string event_json(const Caller& caller, const LiveRow* row) {
  return object_json([&](ObjectJson& out) {
    out.text("accountId", caller.account->id);
    out.text("time", time_text(micros_at(wall_now())));
    out.object("payload", [&](ObjectJson& payload) {
      payload.text("entityType", row == nullptr ? "" : entity_type(row->state));
      if (row == nullptr) {
        payload.text("eventType", "RESET");
        payload.null("item");
        return;
      }
      payload.text("eventType", row->is_gone() ? "DELETED" : "UPDATED");
      payload.object("item", [&](ObjectJson& item) {
        const auto& key = row->state.key;
        item.text("group", key.group);
        item.text("version", row->state.version);
        item.text("kind", key.kind);
        item.text("runtime", key.runtime);
        item.text("namespace", key.object_namespace);
        item.text("name", key.name);
      });
    });
  });
}

// The events of one subscription. The socket authenticates the caller again before it sends each of them.
class EventStream {
 public:
  EventStream(LiveUpdates& live, LiveUpdates::Subscription subscription,
              const RequestContext& request)
      : live_(live), subscription_(std::move(subscription)), request_(request) {}

  Task<Result<std::optional<graphql::Json>>> next() {
    auto& subscriber = subscription_.subscriber();
    if (std::exchange(has_to_authorise_, false)) {
      auto authorised =
          co_await live_.authorise(subscriber, request_.caller, deadline_after(kAuthoriseLimit));
      if (!authorised) co_return std::unexpected(std::move(authorised.error()));
      live_.hub().take_references(subscriber);  // the client was told RESET
    }
    while (waiting_.empty()) {
      co_await subscription_.wait(kNever);
      if (LiveHub::take_check(subscriber)) {
        // This event makes the socket ask who the caller is now. Its permissions are read before the next one.
        has_to_authorise_ = true;
        waiting_.clear();
        co_return event(nullptr);
      }
      auto taken = live_.hub().take_references(subscriber);
      if (taken.is_reset) waiting_.push_back(nullptr);
      // A row that was removed names nothing.
      for (auto& row : taken.rows) {
        if (!row->state.key.name.empty()) waiting_.push_back(std::move(row));
      }
    }
    const auto row = std::move(waiting_.front());
    waiting_.pop_front();
    co_return event(row.get());
  }

 private:
  [[nodiscard]] std::optional<graphql::Json> event(const LiveRow* row) const {
    return graphql::Json::trusted(
        event_json(*subscription_.subscriber().permissions().caller, row));
  }

  LiveUpdates& live_;
  LiveUpdates::Subscription subscription_;
  const RequestContext& request_;
  std::deque<std::shared_ptr<const LiveRow>> waiting_;
  bool has_to_authorise_ = false;
};

Task<Result<graphql::Stream>> read_model_events(LiveUpdates* live, Call& call) {
  if (live == nullptr) co_return fail(ErrorCode::unavailable, "there are no live updates");
  const auto& request = call.context<RequestContext>();
  LiveTopics topics;
  topics.everything = true;
  auto subscription =
      co_await live->subscribe(request.caller, std::move(topics), {}, call.deadline());
  if (!subscription) co_return std::unexpected(std::move(subscription.error()));
  const auto stream = std::make_shared<EventStream>(*live, std::move(*subscription), request);
  co_return graphql::Stream::from([stream] { return stream->next(); });
}

}  // namespace

std::vector<FieldRow> live_event_rows(Dependencies& dependencies) {
  return {subscribe("readModelEvents", Permission::user, [&dependencies](Call& call) {
    return read_model_events(dependencies.live, call);
  })};
}

}  // namespace gitops::control_plane_server
