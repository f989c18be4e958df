#include "control-plane/live/live_row.hpp"

#include "common/core/json_text.hpp"
#include "control-plane/projection/event.hpp"
#include "control-plane/views/application_view.hpp"
#include "control-plane/views/view_json.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kComponentEntity = "component";

// The text of the members without the braces.
template <class Write>
std::string members_of(const Write& write) {
  auto text = object_json(write);
  return text.substr(1, text.size() - 2);
}

void write_auto_sync(ObjectJson& out, JsonView application) {
  const auto policy = sync_policy(application);
  if (policy == "Unknown") {
    out.null("autoSync");
  } else {
    out.flag("autoSync", policy == "Automated");
  }
}

// Writes the labels of an Application as "key=value"; null for other objects.
void write_labels(ObjectJson& out, JsonView application) {
  if (!application.exists()) {
    out.null("labels");
    return;
  }
  out.array("labels", [&](ArrayJson& items) {
    for (const auto& [name, value] : application["metadata"]["labels"].members()) {
      items.text(std::string(name) + '=' + std::string(value.text()));
    }
  });
}

std::string members(const ObjectState& state, JsonView live) {
  const bool is_application = state.key.kind == "Application";
  const JsonView application = is_application ? live : JsonView();
  const auto labels = application["metadata"]["labels"];
  return members_of([&](ObjectJson& out) {
    out.text("uid", state.uid);
    out.text("runtime", state.key.runtime);
    out.text("namespace", state.key.object_namespace);
    out.text("name", state.key.name);
    out.text("kind", state.key.kind);
    out.text_or_null("health", to_string(state.health));
    out.text("sync", to_string(state.sync));
    out.text_or_null("phase", to_string(state.phase));
    out.text_or_null("revision", state.revision);
    out.text_or_null("message", labels["app.meta.commit-message"].text());
    out.text_or_null("author", labels["app.meta.commit-author"].text());
    out.text_or_null("cluster", state.destination);
    out.text_or_null("project", application["spec"]["project"].text());
    out.text_or_null("repo", main_source(application)["repoURL"].text());
    write_labels(out, application);
    write_auto_sync(out, application);
    out.time_or_null("changedAt", state.changed_at);
    out.time_or_null("seenAt", state.seen_at);
  });
}

// Keeps the labels and annotations: they are all that Visibility::shows() reads.
std::string view_of(JsonView live) {
  const auto metadata = live["metadata"];
  if (!metadata.is_object()) return {};
  return object_json([&](ObjectJson& out) {
    out.object("metadata", [&](ObjectJson& at) {
      for (const auto* part : {"labels", "annotations"}) {
        const auto value = metadata[part];
        if (value.is_object()) at.raw(part, value.to_text());
      }
    });
  });
}

}  // namespace

LiveRow live_row(std::int64_t account, const ObjectRow& row) {
  ParsedBody body;
  body.read(row.body);
  LiveRow out{.account = account, .state = row.state, .owner_uid = row.state.manager.uid};
  const auto& key = row.state.key;
  out.is_listed =
      out.is_application() && key.group == kArgoGroup && row.state.entity != kComponentEntity;
  if (out.is_application()) out.view = view_of(body.live());
  if (!out.is_gone()) out.members = members(row.state, body.live());
  return out;
}

LiveRow removed_row(const OutboxChange& change) {
  LiveRow out{.account = change.account, .owner_uid = change.owner_uid};
  out.state.id = change.object;
  out.state.key.kind = change.kind;
  out.state.uid = change.uid;
  out.state.presence = Presence::gone;
  out.is_listed = out.is_application();
  return out;
}

std::string runtime_members(const LiveRuntime& runtime) {
  return members_of([&](ObjectJson& out) {
    out.text("name", runtime.name);
    out.text_or_null("namespace", runtime.runtime_namespace);
    out.text_or_null("cluster", runtime.cluster);
    out.time_or_null("createdAt", runtime.created_at);
    out.time_or_null("seenAt", runtime.seen_at);
  });
}

void append_live_row(std::string& out, std::string_view topic, std::string_view members) {
  out += "{\"topic\":";
  append_json_string(out, topic, JsonEscape::minimal);
  out += ',';
  out += members;
  out += '}';
}

}  // namespace gitops::control_plane_server
