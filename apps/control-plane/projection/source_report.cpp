#include "control-plane/projection/source_report.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "common/core/encoding.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxField = 512;  // bytes of a name
constexpr std::size_t kMaxDepth = 128;

struct Field {
  std::string* target;
  std::string_view name;
  JsonView value;
  bool is_required;
};

Result<void> read_fields(std::span<const Field> fields) {
  for (const auto& field : fields) {
    auto text = key_text(field.value, field.name, field.is_required, kMaxField);
    if (!text) return std::unexpected(std::move(text.error()));
    *field.target = std::move(*text);
  }
  return {};
}

// Returns the first of these texts that is there, for display.
std::string first_text(std::initializer_list<JsonView> candidates) {
  for (const auto candidate : candidates) {
    if (!candidate.text().empty()) return display_text(candidate.text(), kMaxField);
  }
  return {};
}

// Reads the fields that GitHub, Gitea, Bitbucket and GitLab send in the body of a webhook.
void read_webhook(EventPayload& payload, JsonView data) {
  const auto body = data["body"].is_object() ? data["body"] : data;
  payload.repository =
      first_text({body["repository"]["full_name"], body["project"]["path_with_namespace"],
                  body["repository"]["name"]});
  payload.initiator =
      first_text({body["sender"]["login"], body["user_username"], body["user"]["username"],
                  body["actor"]["nickname"], body["actor"]["name"], body["user_name"]});
}

}  // namespace

Result<EventPayload> read_event_payload(JsonParser& parser, std::string_view body,
                                        Micros arrived_at) {
  const auto event = parser.parse_object(body, "the event payload");
  if (!event) return std::unexpected(event.error());
  EventPayload payload;
  const std::array<Field, 4> fields{{{&payload.id, "id", (*event)["id"], true},
                                     {&payload.source, "source", (*event)["source"], true},
                                     {&payload.type, "type", (*event)["type"], true},
                                     {&payload.subject, "subject", (*event)["subject"], false}}};
  if (auto read = read_fields(fields); !read) return std::unexpected(std::move(read.error()));
  const auto time = time_of((*event)["time"].text());
  payload.at = time > 0 ? std::min(time, arrived_at) : arrived_at;
  const auto plain = (*event)["data"];
  if (plain.exists()) {
    payload.data = plain.to_text();
    read_webhook(payload, plain);
    return payload;
  }
  if (!(*event)["data_base64"].is_text()) return fail(ErrorCode::invalid_data, "data is missing");
  auto decoded = base64_decode((*event)["data_base64"].text());
  if (!decoded) return fail("data_base64", std::move(decoded.error()));
  payload.data = std::move(*decoded);
  JsonParser data_parser(kMaxDepth);
  const auto data = data_parser.parse(payload.data, "data_base64");
  if (!data) return std::unexpected(data.error());
  read_webhook(payload, *data);
  return payload;
}

Result<SourceError> read_source_error(JsonParser& parser, std::string_view body) {
  const auto report = parser.parse_object(body, "the error report");
  if (!report) return std::unexpected(report.error());
  SourceError error;
  const auto object = (*report)["context"]["object"];
  const std::array<Field, 5> fields{
      {{&error.kind, "context.object.kind", object["kind"], true},
       {&error.name, "context.object.name", object["name"], true},
       {&error.object_namespace, "context.object.namespace", object["namespace"], false},
       {&error.group, "context.object.group", object["group"], false},
       {&error.version, "context.object.version", object["version"], false}}};
  if (auto read = read_fields(fields); !read) return std::unexpected(std::move(read.error()));
  error.message = display_text((*report)["errMsg"].text());
  if (error.message.empty()) return fail(ErrorCode::invalid_data, "errMsg is missing");
  return error;
}

}  // namespace gitops::control_plane_server
