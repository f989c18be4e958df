#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control-plane/live/change_store.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/views/object_query.hpp"

// Rows of pages as the members of a JSON object. Pure.
namespace gitops::control_plane_server {

// An object as it was read last. All subscribers share it, and it never changes.
struct LiveRow {
  std::int64_t account = 0;
  ObjectState state = {};  // of a removed row: id, kind and uid only
  std::string owner_uid = {};
  bool is_listed = false;    // among the Applications of the topic `index`
  std::string view = {};     // JSON: what rules with labels read of an Application
  std::string members = {};  // JSON members behind "topic"

  [[nodiscard]] bool is_gone() const { return state.presence == Presence::gone; }
  [[nodiscard]] bool is_application() const { return state.key.kind == "Application"; }
};

LiveRow live_row(std::int64_t account, const ObjectRow& row);
// The row of an object that is not in the database any more.
LiveRow removed_row(const OutboxChange& change);

// `"name":…` and the other members of a row of the topic `runtimes`.
std::string runtime_members(const LiveRuntime& runtime);
// Appends `{"topic":…,` and the members.
void append_live_row(std::string& out, std::string_view topic, std::string_view members);

}  // namespace gitops::control_plane_server
