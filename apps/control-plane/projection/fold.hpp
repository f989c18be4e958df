#pragma once

#include <optional>

#include "control-plane/projection/event.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// The outcome of an event. Every outcome is acknowledged.
enum class Outcome : std::uint8_t {
  stored = 0,
  duplicate = 1,  // the same sequence, or without one the same content: only seen_at changes
  stale = 2,      // a sequence below the last one that counted
};

// The writes for one event, which the store applies. Absent members leave their rows unchanged.
struct Effects {
  Outcome outcome = Outcome::stored;
  ObjectState state;  // the new state, with the id of the old one
  std::optional<ObjectBody> body = {};
  std::optional<Labels> labels = {};  // all labels of the object
  std::optional<TimelineRow> timeline = {};
  std::optional<Release> release = {};  // inserted, or merged with the row of the same history id
  bool is_visible = false;              // a list or a page shows a change
};

// Folds an event into the state of its object; `current` is absent for an object without a row. Pure: the same
// arguments give the same effects, so a batch can be folded again after a lost connection.
//
// Rules (docs/reference/events.md): an event whose sequence is not above that of the state is stale or a duplicate. Without
// sequences the order of arrival counts, and equal content is a duplicate. Another uid under the same key with a higher
// sequence is a new object ("recreated"). A deletion of another uid than the present one is stale. A deletion of an
// object without a row leaves a gone row as a tombstone, so that an older event does not bring the object back; one of
// another uid with a higher sequence raises the tombstone's. A stored sequence more than 10 minutes ahead of the event's
// arrival does not count for an event whose own is not.
Effects fold(const std::optional<ObjectState>& current, const Event& event);

// Returns the stored release, updated by one more event about the same history id. One that began at another time is
// another release, of a new Application of the same name, and replaces it.
Release merge(const Release& stored, const Release& newer);

}  // namespace gitops::control_plane_server
