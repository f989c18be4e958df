#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/time.hpp"
#include "event-reporter/event/commits.hpp"
#include "event-reporter/event/error_list.hpp"
#include "event-reporter/event/questions.hpp"
#include "event-reporter/event/resource_state.hpp"

namespace gitops::reporter {

// What one event says (docs/events.md); the texts are borrowed. An event about an application that
// nobody manages leaves the fields about its manager as they are here.
struct EventBody {
  std::string_view object;  // JSON of what the event is about
  std::string_view desired_manifest{};
  std::string_view actual_manifest{};
  std::string_view repo_url{};
  std::string_view revision{};
  std::optional<Commit> commit{};
  std::string_view app_name{};
  std::string app_labels = "{}";  // JSON
  std::string_view sync_status{};
  std::string sync_started_at{};
  std::string sync_finished_at{};  // left out when empty
  std::optional<Health> health{};
  std::string_view cluster{};
  std::int64_t history_id = 0;
  std::string_view operation_revision{};
  std::string_view app_uid{};
  std::string_view app_ns{};
};

// The body that is posted, {"data":{…}}. `now` is the event's timestamp.
std::string write_event(const EventBody& body, const ErrorList& errors,
                        const TrackingSettings& settings, WallTime now);

// The same event for a control plane that finds it too large: objects and manifests are cut down to
// what names them, and an Application to that and the summary of its status. What was empty stays
// empty, since that is how an absent object is told. Empty when nothing can be left out.
std::string reduced_event(std::string_view body);

}  // namespace gitops::reporter
