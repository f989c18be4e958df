#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"
#include "control-plane/projection/object.hpp"

// Reports of event sources (Argo Events) besides the states of objects: the payloads of Git webhooks, and errors.
namespace gitops::control_plane_server {

// The payload of a Git webhook, as the CloudEvent that an event source made of it.
struct EventPayload {
  std::string id = {};          // of the CloudEvent; unique within its source
  std::string source = {};      // the name of the EventSource
  std::string type = {};        // the type of the event source: "github"
  std::string subject = {};     // the name of the event in the EventSource
  Micros at = 0;                // the CloudEvent's time, at most the arrival
  std::string repository = {};  // "acme/shop"; empty: not known
  std::string initiator = {};   // who caused the webhook; empty: not known
  std::string data = {};        // JSON: the headers and the body of the webhook
};

// An error of an event source or a sensor.
struct SourceError {
  std::string group = {};
  std::string version = {};
  std::string kind = {};
  std::string object_namespace = {};
  std::string name = {};
  std::string message = {};  // at most 1,000 bytes
};

// Reads the uncompressed body of a POST to /2.0/api/events/event-payload: a CloudEvent 1.0 in JSON, with `data` or
// `data_base64`. invalid_data: a message that names the field.
Result<EventPayload> read_event_payload(JsonParser& parser, std::string_view body,
                                        Micros arrived_at);

// Reads the uncompressed body of a POST to /2.0/api/events/error:
// {"errMsg":…,"context":{"object":{group,version,kind,name,namespace}}}. invalid_data: a message that names the field.
Result<SourceError> read_source_error(JsonParser& parser, std::string_view body);

}  // namespace gitops::control_plane_server
