#include "k8s-client/watch.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "k8s-client/status.hpp"

namespace gitops::k8s {

namespace {

constexpr std::size_t kMaxControlObject = 64 * 1024;  // limit of a BOOKMARK or an ERROR
constexpr std::size_t kMaxIdleBuffer = 64 * 1024;
constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";
constexpr std::string_view kDeleted = "\"DELETED\"";

bool is_space(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

WatchEvent quarantined(Quarantined what, std::string resource_version, bool deletion) {
  WatchEvent event;
  event.type = WatchEvent::Type::quarantined;
  event.quarantined = std::move(what);
  event.resource_version = std::move(resource_version);
  event.quarantined_deletion = deletion;
  return event;
}

WatchEvent malformed(std::string reason, std::size_t bytes) {
  return quarantined({.key = {}, .reason = std::move(reason), .bytes = bytes}, {}, false);
}

WatchEvent bookmark(std::string_view text) {
  const auto object = parse_json_object(text);
  WatchEvent event;
  const auto annotation = string_at(object, {"metadata", "annotations", kInitialEventsEnd});
  event.type =
      annotation == "true" ? WatchEvent::Type::initial_events_end : WatchEvent::Type::bookmark;
  event.resource_version = string_at(object, {"metadata", "resourceVersion"});
  if (event.resource_version.empty()) {
    return malformed("bookmark without resourceVersion", text.size());
  }
  return event;
}

WatchEvent error_event(std::string_view text) {
  WatchEvent event;
  event.type = WatchEvent::Type::error;
  event.error = error_of(parse_status(text));
  return event;
}

}  // namespace

std::string_view to_string(WatchEvent::Type type) {
  switch (type) {
    case WatchEvent::Type::added:
      return "added";
    case WatchEvent::Type::modified:
      return "modified";
    case WatchEvent::Type::deleted:
      return "deleted";
    case WatchEvent::Type::bookmark:
      return "bookmark";
    case WatchEvent::Type::initial_events_end:
      return "initial_events_end";
    case WatchEvent::Type::error:
      return "error";
    case WatchEvent::Type::dropped:
      return "dropped";
    case WatchEvent::Type::quarantined:
      return "quarantined";
  }
  return "unknown";
}

void WatchDecoder::reset() {
  pending_.clear();
  skipped_bytes_ = 0;
}

void WatchDecoder::feed(std::string_view bytes, const OnEvent& on_event) {
  for (;;) {
    const auto newline = bytes.find('\n');
    if (newline == std::string_view::npos) break;
    end_line(bytes.substr(0, newline), on_event);
    bytes.remove_prefix(newline + 1);
  }
  if (!bytes.empty()) keep_part(bytes);
}

void WatchDecoder::keep_part(std::string_view part) {
  if (skipped_bytes_ > 0) {
    skipped_bytes_ += part.size();
    return;
  }
  if (pending_.size() + part.size() <= max_line()) {
    pending_ += part;
    return;
  }
  skipped_bytes_ = pending_.size() + part.size();
  // The beginning of the line usually contains the name.
  pending_ += part.substr(0, max_line() - pending_.size());
  auto known = decoder_.decode_broken(json::find_member(pending_, "object"), "line too long");
  too_long_ = quarantined(std::move(known.quarantined), std::move(known.resource_version),
                          json::find_member(pending_, "type") == kDeleted);
  if (known.kind == ObjectDecoder::Kind::dropped) too_long_.type = WatchEvent::Type::dropped;
  std::string().swap(pending_);
}

void WatchDecoder::end_line(std::string_view last_part, const OnEvent& on_event) {
  const bool whole = pending_.empty() && skipped_bytes_ == 0;
  if (whole && last_part.size() <= max_line()) {
    decode_line(last_part, on_event);
    return;
  }
  keep_part(last_part);
  if (skipped_bytes_ > 0) {
    too_long_.quarantined.bytes = std::exchange(skipped_bytes_, 0);
    on_event(std::exchange(too_long_, {}));
    return;
  }
  // The line is moved out, so that the callback may call reset() and feed().
  auto line = std::exchange(pending_, {});
  decode_line(line, on_event);
  if (pending_.empty() && line.capacity() <= kMaxIdleBuffer) {
    line.clear();
    pending_ = std::move(line);
  }
}

void WatchDecoder::decode_line(std::string_view line, const OnEvent& on_event) {
  if (is_space(line)) return;
  auto tokens = decoder_.tokenize(line);
  if (!tokens) {
    auto known = decoder_.decode_broken(json::find_member(line, "object"), tokens.error());
    auto event = quarantined(std::move(known.quarantined), std::move(known.resource_version),
                             json::find_member(line, "type") == kDeleted);
    if (known.kind == ObjectDecoder::Kind::dropped) event.type = WatchEvent::Type::dropped;
    on_event(std::move(event));
    return;
  }

  auto& walk = *tokens;
  std::string_view type;
  std::string_view object;
  auto object_at = walk.mark();
  const bool complete = walk.members([&](std::string_view key) {
    const auto here = walk.mark();
    const auto value = walk.skip();
    if (key == "type") type = value;
    if (key == "object") {
      object = value;
      object_at = here;
    }
    return !value.empty();
  });
  if (!complete || !walk.at_end() || object.empty()) {
    on_event(malformed("malformed event", line.size()));
    return;
  }

  const bool is_bookmark = type == "\"BOOKMARK\"";
  if (is_bookmark || type == "\"ERROR\"") {
    if (object.size() > kMaxControlObject || walk.deepest() > decoder_.limits_.max_depth) {
      on_event(malformed("bookmark or error over the limits", line.size()));
    } else {
      on_event(is_bookmark ? bookmark(object) : error_event(object));
    }
    return;
  }
  const bool deletion = type == kDeleted;
  const bool addition = type == "\"ADDED\"";
  if (!deletion && !addition && type != "\"MODIFIED\"") {
    on_event(malformed("unknown event type", line.size()));
    return;
  }

  walk.reset(object_at);
  auto item = decoder_.decode_at(walk);
  if (!item) {  // impossible: its brackets were counted above
    on_event(malformed("malformed event", line.size()));
    return;
  }
  auto& decoded = item->decoded;
  WatchEvent event;
  switch (decoded.kind) {
    case ObjectDecoder::Kind::object:
      event.type = deletion   ? WatchEvent::Type::deleted
                   : addition ? WatchEvent::Type::added
                              : WatchEvent::Type::modified;
      event.resource_version = decoded.record.resource_version();
      event.record = std::move(decoded.record);
      event.text = object;
      break;
    case ObjectDecoder::Kind::dropped:
      event.type = WatchEvent::Type::dropped;
      event.resource_version = std::move(decoded.resource_version);
      break;
    case ObjectDecoder::Kind::bad:
      event = quarantined(std::move(decoded.quarantined), std::move(decoded.resource_version),
                          deletion);
      break;
  }
  on_event(std::move(event));
}

}  // namespace gitops::k8s
