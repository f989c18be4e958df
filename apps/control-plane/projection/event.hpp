#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// An event, the complete report of one object (docs/reference/events.md). Made from one request.
struct Event {
  ObjectState state = {};  // id 0; changed_at and seen_at are the arrival
  ObjectBody body = {};
  Labels labels = {};
  bool is_deletion = false;
  // Deployment of an Application: the newest entry of its history, or the running operation before it has an entry.
  bool has_release = false;
  Release release = {};
  // Fields of the manager's last operation.
  Micros commit_at = 0;
  std::string author = {};
  std::string message = {};
};

// The data of a request besides its body.
struct EventHead {
  std::string event_id = {};  // X-Event-Id; may be empty
  std::int64_t sequence = 0;  // X-Event-Sequence; 0: none
  std::string runtime = {};   // of the token
  Micros arrived_at = 0;
};

struct EventLimits {
  std::size_t max_name = 512;    // bytes of any part of a key
  std::size_t max_labels = 256;  // of an object; the rest is cut off
  std::size_t max_label = 1024;  // bytes of a key or value
  std::size_t max_depth = 128;   // of JSON
  std::size_t max_images = 500;  // of an Application
};

// Reads the uncompressed body of a POST to /2.0/api/events. Supports the payloads of our reporters and of older ones:
// an Application, a resource of an Application, an object of the resource reporter, a Sensor of older charts. Numbers
// of any size and unknown fields are kept as text. A text with a NUL or with invalid UTF-8 is refused.
//
// Errors: invalid_data with a message that names the field and never quotes values.
Result<Event> read_event(JsonParser& parser, std::string_view body, const EventHead& head,
                         const EventLimits& limits = {});

// Parse Argo's words for states, in any case. An unknown word returns `unknown`.
SyncStatus sync_status_of(std::string_view word);
HealthStatus health_status_of(std::string_view word);
Phase phase_of(std::string_view word);
// Return the platform's words: "OUT_OF_SYNC", "HEALTHY", and Argo's for phases: "Succeeded". Empty for none.
std::string_view to_string(SyncStatus status);
std::string_view to_string(HealthStatus status);
std::string_view to_string(Presence presence);
std::string_view to_string(Phase phase);

}  // namespace gitops::control_plane_server
