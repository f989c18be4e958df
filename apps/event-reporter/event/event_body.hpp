#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/time.hpp"
#include "event-reporter/event/commits.hpp"
#include "event-reporter/event/digest.hpp"
#include "event-reporter/event/error_list.hpp"
#include "event-reporter/event/read_plan.hpp"
#include "event-reporter/event/resource_state.hpp"

namespace gitops::reporter {

// What an event says of the application that manages its object. An application that nobody manages
// has an event of its own without most of it. Views borrow from the AppView.
struct AppFields {
  bool managed = false;  // the object is a resource, or an application with a parent
  std::string_view repo_url{};
  std::string_view revision{};
  std::optional<Commit> commit{};
  std::string_view name{};
  std::string labels = "{}";  // JSON
  std::string started_at{};   // empty: at the time of the event
  std::string finished_at{};  // empty: not finished
  std::string_view cluster{};
  std::int64_t history_id = 0;
  std::string_view operation_revision{};
  std::string_view uid{};
  std::string_view ns{};
};

// What one event says (docs/events.md), by reference.
struct EventBody {
  const AppFields& app;
  const ResourceState& state;  // of the event's object
  const ErrorList& errors;
  const TrackingSettings& settings;
  WallTime now;  // the event's timestamp
};

// The body that is posted, {"data":{…}}.
std::string write_event(const EventBody& body);

// What counts for a digest; each scope includes the one before.
enum class DigestScope { application, resource, resource_and_revision };
// The digest of `head` and of what counts of the event: two events with the same digest tell a
// receiver the same, but for times and the like. Ledgers hold these digests.
Digest digest_event(const EventBody& body, DigestScope scope,
                    std::initializer_list<std::string_view> head);

// The same event for a control plane that finds it too large: objects and manifests are cut down to
// what names them, and an Application to that and the summary of its status. What was empty stays
// empty, since that is how an absent object is told. Empty when nothing can be left out.
std::string reduced_event(std::string_view body);

}  // namespace gitops::reporter
