#include "control-plane/projection/fold.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/core/text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxTimelineMessage = 200;
// Distance of a sequence, a time in microseconds, above the arrival of an event from which it is that of a clock that
// ran ahead.
constexpr Micros kAheadOfTime = 10LL * 60 * 1'000'000;

// Returns whether users see the difference as a change of the object.
bool is_milestone(const ObjectState& before, const ObjectState& after) {
  return before.revision != after.revision || before.sync != after.sync ||
         before.health != after.health || before.phase != after.phase ||
         before.history_id != after.history_id ||
         (before.presence == Presence::gone) != (after.presence == Presence::gone);
}

bool is_equal_content(const ObjectState& before, const ObjectState& after) {
  return before.uid == after.uid && before.presence == after.presence &&
         before.body_digest == after.body_digest && before.labels_digest == after.labels_digest &&
         !is_milestone(before, after);
}

bool is_another_object(const ObjectState& before, const Event& event) {
  return !before.uid.empty() && !event.state.uid.empty() && before.uid != event.state.uid;
}

// Returns effects that change only the time of the last event.
Effects seen(const ObjectState& current, Outcome outcome, const Event& event) {
  Effects effects{.outcome = outcome, .state = current};
  if (outcome == Outcome::duplicate) {
    effects.state.seen_at = std::max(current.seen_at, event.state.seen_at);
  }
  return effects;
}

// Returns whether the stored sequence is from a clock that ran ahead, and the event's is not. A reporter continues above
// such a sequence unless it lost its ledger, and would have no event that counts before that time has come.
bool is_ahead_of_time(const ObjectState& current, const Event& event) {
  const auto latest = event.state.seen_at + kAheadOfTime;
  return current.sequence > latest && event.state.sequence <= latest;
}

Outcome outcome_of(const ObjectState& current, const Event& event) {
  const bool ordered =
      current.sequence > 0 && event.state.sequence > 0 && !is_ahead_of_time(current, event);
  if (ordered && event.state.sequence < current.sequence) return Outcome::stale;
  if (ordered && event.state.sequence == current.sequence) return Outcome::duplicate;
  // A deletion applies only to the object with its uid. That of a later object, no state of which arrived, keeps late
  // ones out.
  if (event.is_deletion && is_another_object(current, event) &&
      !(ordered && current.presence == Presence::gone)) {
    return Outcome::stale;
  }
  if (!ordered && is_equal_content(current, event.state)) return Outcome::duplicate;
  return Outcome::stored;
}

TimelineStep step_of(const std::optional<ObjectState>& current, const Event& event) {
  if (event.is_deletion) return TimelineStep::gone;
  if (!current) return TimelineStep::created;
  const bool returned = current->presence == Presence::gone || is_another_object(*current, event);
  return returned ? TimelineStep::recreated : TimelineStep::changed;
}

TimelineRow timeline_row(const std::optional<ObjectState>& current, const Event& event) {
  const auto& state = event.state;
  return {.sequence = state.sequence > 0 ? state.sequence : state.seen_at,
          .at = state.seen_at,
          .step = step_of(current, event),
          .revision = state.revision,
          .sync = state.sync,
          .health = state.health,
          .phase = state.phase,
          .commit_at = event.commit_at,
          .author = event.author,
          .message = shortened(event.message, kMaxTimelineMessage),
          .event_id = state.event_id};
}

// Returns the state of a deleted object. A deletion identifies only the object, so the other fields keep their last
// values for its page.
ObjectState gone_state(const ObjectState& current, const Event& event) {
  ObjectState state = current;
  state.sequence = event.state.sequence;
  state.event_id = event.state.event_id;
  state.presence = Presence::gone;
  state.seen_at = event.state.seen_at;
  return state;
}

// Returns whether a kind has a timeline: the kinds that users follow, not each ConfigMap.
bool has_timeline(const ObjectKey& key) {
  return key.origin == Origin::resource || key.kind == "Application";
}

}  // namespace

Effects fold(const std::optional<ObjectState>& current, const Event& event) {
  if (current) {
    const auto outcome = outcome_of(*current, event);
    if (outcome != Outcome::stored) return seen(*current, outcome, event);
  }
  Effects effects;
  effects.state = event.is_deletion && current ? gone_state(*current, event) : event.state;
  auto& state = effects.state;
  state.id = current ? current->id : 0;
  if (current && current->created_at > 0 && state.created_at == 0 &&
      !is_another_object(*current, event)) {
    state.created_at = current->created_at;
  }
  const bool milestone =
      !current || is_milestone(*current, state) || is_another_object(*current, event);
  state.changed_at = milestone ? event.state.changed_at : current->changed_at;
  if (!event.is_deletion) {
    if (!current || current->body_digest != state.body_digest) effects.body = event.body;
    if (!current || current->labels_digest != state.labels_digest) effects.labels = event.labels;
    if (event.has_release) effects.release = event.release;
  }
  if (milestone && has_timeline(state.key)) effects.timeline = timeline_row(current, event);
  effects.is_visible = milestone || (current && current->presence != state.presence) ||
                       effects.body.has_value() || effects.labels.has_value();
  return effects;
}

Release merge(const Release& stored, const Release& newer) {
  Release merged = newer;
  // Argo CD counts from 0 again when an Application is deleted and created again.
  if (newer.started_at != 0 && newer.started_at != stored.started_at) return merged;
  const auto keep = [](auto& value, const auto& old) {
    if (value == std::remove_cvref_t<decltype(value)>{}) value = old;
  };
  keep(merged.author, stored.author);
  keep(merged.message, stored.message);
  keep(merged.commit_at, stored.commit_at);
  keep(merged.operation_revision, stored.operation_revision);
  keep(merged.started_at, stored.started_at);
  keep(merged.finished_at, stored.finished_at);
  keep(merged.initiator, stored.initiator);
  keep(merged.phase, stored.phase);
  merged.was_degraded = stored.was_degraded || newer.was_degraded;
  return merged;
}

}  // namespace gitops::control_plane_server
