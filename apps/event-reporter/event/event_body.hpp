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

// The fields of an event about the application that manages the event's object. The event of a root
// application, which no other one manages, leaves most of them empty. Borrows from the AppView.
struct AppFields {
  bool managed = false;  // false: of a root application
  std::string_view repo_url{};
  std::string_view revision{};
  std::optional<Commit> commit{};
  std::string_view name{};
  std::string labels = "{}";  // JSON object
  std::string started_at{};   // empty: the time of the event
  std::string finished_at{};  // empty: not finished
  std::string_view cluster{};
  std::int64_t history_id = 0;
  std::string_view operation_revision{};
  std::string_view uid{};
  std::string_view ns{};
};

// The content of one event (docs/reference/events.md), by reference.
struct EventBody {
  const AppFields& app;
  const ResourceState& state;  // state of the event's object
  const ErrorList& errors;
  const TrackingSettings& settings;
  WallTime now;  // the event's timestamp
};

// Returns the body that is posted, {"data":{…}}.
std::string write_event(const EventBody& body);

// The fields that a digest covers. Each scope includes the previous one.
enum class DigestScope { application, resource, resource_and_revision };
// Returns the digest of `head`, of the event's fields in the scope, and of its errors. The ledger
// keeps it; an event is due when its digest is not the acknowledged one.
Digest digest_event(const EventBody& body, DigestScope scope,
                    std::initializer_list<std::string_view> head);

// Returns the event in its reduced form, for a control plane that responded with 413: objects and
// manifests are reduced to the fields that identify them, an Application also keeps the summary of
// its status. Empty manifests stay empty, since they mean that the object does not exist. Empty
// when the body cannot be reduced.
std::string reduced_event(std::string_view body);

}  // namespace gitops::reporter
