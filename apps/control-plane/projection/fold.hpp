#pragma once

#include <optional>

#include "control-plane/projection/event.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// What became of an event. All of them are acknowledged.
enum class Outcome : std::uint8_t {
  stored = 0,
  duplicate = 1,  // the same sequence, or without one the same content: nothing but seen_at changes
  stale = 2,      // a sequence below the one that counted
};

// What to write for one event; the store applies it. Absent parts stay as they are.
struct Effects {
  Outcome outcome = Outcome::stored;
  ObjectState state;  // the new state, with the id of the old one
  std::optional<ObjectBody> body = {};
  std::optional<Labels> labels = {};  // all of them
  std::optional<TimelineRow> timeline = {};
  std::optional<Release> release = {};  // inserted, or merged with the row of the same history id
  bool is_visible = false;  // tells pages: something that a list or a page shows has changed
};

// Folds an event into the state of its object; `current` is absent for an object that was never seen. Pure: the same
// arguments give the same effects, which is why a batch can be folded again after a lost connection.
//
// Rules (docs/events.md): an event whose sequence is not above that of the state is stale or a duplicate. Without
// sequences the order of arrival counts, and equal content is a duplicate. Another uid under the same key with a higher
// sequence is a new object ("recreated"). A deletion of another uid than the present one is stale. A deletion of an
// object that was never seen leaves a gone row, so that an older event does not bring it back.
Effects fold(const std::optional<ObjectState>& current, const Event& event);

// The release as it is stored, after one more event about the same history id.
Release merge(const Release& stored, const Release& newer);

}  // namespace gitops::control_plane_server
