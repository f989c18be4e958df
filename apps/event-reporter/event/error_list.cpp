#include "event-reporter/event/error_list.hpp"

#include <utility>

#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

JsonView sync_results(const AppView& app) {
  return app.operation_state()["syncResult"]["resources"];
}

bool failed(JsonView sync_result) {
  const auto phase = sync_result["hookPhase"].text();
  return phase == "Failed" || phase == "Error" || sync_result["status"].text() == "SyncFailed";
}

bool is_about_tasks(std::string_view message) {
  return message.contains("one or more synchronization tasks completed unsuccessfully") ||
         message.contains("one or more synchronization tasks are not valid");
}

void write_source(std::string& out, const ResourceId& id) {
  ObjectWriter source(out);
  source.text("group", id.group);
  source.text("version", id.version);
  source.text("kind", id.kind);
  source.text("namespace", id.ns);
  source.text("name", id.name);
  source.end();
}

}  // namespace

void ErrorList::add_sync_result(const AppView& app, JsonView result) {
  if (!failed(result)) return;
  errors_.push_back({.type = "sync",
                     .level = "error",
                     .message = std::string(result["message"].text()),
                     .last_seen = go_time_or(app.operation_state()["startedAt"].text(), now_)});
}

void ErrorList::add_conditions(const AppView& app) {
  for (const auto condition : app.status()["conditions"].items()) {
    const auto message = condition["message"].text();
    if (is_about_tasks(message) && sync_results(app).exists()) {
      add_failed_tasks(sync_results(app));
      continue;
    }
    const auto type = condition["type"].text();
    const bool warning = type.ends_with("Warning");
    if (!warning && !type.ends_with("Error")) continue;
    errors_.push_back({.type = "sync",
                       .level = warning ? "warning" : "error",
                       .message = std::string(message),
                       .last_seen = go_time_or(condition["lastTransitionTime"].text(), now_)});
  }
}

void ErrorList::add_failed_tasks(JsonView results) {
  for (const auto result : results.items()) {
    const auto message = result["message"].text();
    if (message.empty() || !failed(result)) continue;
    std::string text = "Resource ";
    text.append(result["kind"].text()).append("(").append(result["name"].text());
    text.append("): \n ").append(message);
    errors_.push_back({.type = "sync",
                       .level = "error",
                       .message = std::move(text),
                       .last_seen = format_rfc3339(now_)});
  }
}

void ErrorList::add_operation(const AppView& app) {
  const auto phase = app.operation_state()["phase"].text();
  if (phase != "Error" && phase != "Failed") return;
  errors_.push_back({.type = "sync",
                     .level = "error",
                     .message = std::string(app.operation_state()["message"].text()),
                     .last_seen = go_time_or(app.operation_state()["startedAt"].text(), now_)});
}

void ErrorList::add_health(const TreeView& tree, const ResourceId& id, bool name_source) {
  const auto add = [&](JsonView node) {
    if (node["health"]["status"].text() != "Degraded") return false;
    errors_.push_back({.type = "health",
                       .level = "error",
                       .message = std::string(node["health"]["message"].text()),
                       .last_seen = go_time_or(node["createdAt"].text(), now_),
                       .source = name_source ? std::optional(id) : std::nullopt});
    return true;
  };
  const auto identity = id.identity();
  bool found = false;
  for (const auto node : tree.descendants(identity)) found = add(node) || found;
  if (!found) add(tree.find(identity));
}

void ErrorList::write(std::string& out) const {
  out += '[';
  for (const auto& error : errors_) {
    if (&error != errors_.data()) out += ',';
    ObjectWriter writer(out);
    writer.text("type", error.type);
    writer.text("level", error.level);
    writer.text("message", error.message);
    writer.text("lastSeen", error.last_seen);
    if (error.source) write_source(writer.begin("sourceReference"), *error.source);
    writer.end();
  }
  out += ']';
}

void ErrorList::add_to(Hasher& hasher) const {
  for (const auto& error : errors_) {
    hasher.add(error.type);
    hasher.add(error.level);
    hasher.add(error.message);
    if (error.source) hasher.add(error.source->to_string());
  }
}

}  // namespace gitops::reporter
