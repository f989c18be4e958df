#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/control_plane/inventory.hpp"
#include "common/core/encoding.hpp"
#include "control-plane/projection/event.hpp"
#include "control-plane/projection/fold.hpp"
#include "control-plane/projection/source_report.hpp"

// What a runtime may post to the intake: an event, the object in an event of either reporter, the reports of event
// sources, and an inventory. Whatever is taken can be stored: texts are bounded, and those of columns are UTF-8 without a NUL.
namespace {

using namespace gitops;
using namespace gitops::control_plane_server;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_column(std::string_view text, std::size_t most) {
  // A text that was cut ends with an ellipsis.
  require(text.size() <= most + 3 && is_utf8(text) && !text.contains('\0'));
}

void check_state(const ObjectState& state) {
  const EventLimits limits;
  for (const auto* part :
       {&state.key.owner_uid, &state.key.cluster, &state.key.group, &state.key.kind,
        &state.key.object_namespace, &state.key.name, &state.version, &state.uid,
        &state.manager.name, &state.manager.application_namespace, &state.manager.uid,
        &state.destination, &state.revision, &state.entity}) {
    require_column(*part, limits.max_label);
  }
  require_column(state.health_message, 1'000);
  require(!state.key.kind.empty() && !state.key.name.empty() && state.key.runtime == "prod");
}

void check_event(std::string_view body) {
  JsonParser parser(EventLimits().max_depth);
  const EventHead head{.event_id = "e", .sequence = 7, .runtime = "prod", .arrived_at = 1};
  const auto event = read_event(parser, body, head);
  if (!event) {
    require(!event.error().message.empty());
    return;
  }
  check_state(event->state);
  require(event->labels.size() <= EventLimits().max_labels);
  for (const auto& [key, value] : event->labels) {
    require_column(key, EventLimits().max_label);
    require_column(value, EventLimits().max_label);
  }
  require_column(event->author, 200);
  require_column(event->message, 1'000);
  if (event->has_release) require_column(event->release.images, std::size_t{1024} * 1024);
  const auto first = fold(std::nullopt, *event);
  require(first.outcome == Outcome::stored);
  require(fold(first.state, *event).outcome != Outcome::stored);
}

void check_report(std::string_view body) {
  JsonParser parser(EventLimits().max_depth);
  if (const auto payload = read_event_payload(parser, body, 5)) {
    for (const auto* part : {&payload->id, &payload->source, &payload->type, &payload->subject,
                             &payload->repository, &payload->initiator}) {
      require_column(*part, 512);
    }
    require(payload->at <= 5 && !payload->data.empty());
  }
  if (const auto error = read_source_error(parser, body)) {
    require_column(error->message, 1'000);
    require_column(error->name, 512);
  }
}

void check_inventory(std::string_view body) {
  JsonParser parser(EventLimits().max_depth);
  const auto inventory = control_plane::read_inventory(parser, body);
  if (!inventory) {
    require(!inventory.error().message.empty());
    return;
  }
  require(inventory->sequence > 0 && inventory->replicas > 0 && !inventory->token.empty());
  const auto again = control_plane::read_inventory(parser, control_plane::to_json(*inventory));
  require(again && *again == *inventory);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_event(text);
  check_event(R"({"data":{"object":)" + json_string(text) + "}}");
  check_event(R"({"data":{"source":{"actualManifest":"{}"},"object":")" + base64_encode(text) +
              "\"}}");
  check_report(text);
  check_inventory(text);
  return 0;
}
