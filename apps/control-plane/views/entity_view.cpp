#include "control-plane/views/entity_view.hpp"

#include <utility>

#include "common/core/text.hpp"
#include "control-plane/projection/event.hpp"

namespace gitops::control_plane_server {
namespace {

// The annotation that repeats the whole object.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::string_view kProject = "codefresh.io/project";
constexpr std::size_t kCommitDigits = 40;

void write_pairs(ObjectJson& out, std::string_view key, JsonView pairs) {
  out.array(key, [&](ArrayJson& items) {
    for (const auto& [name, value] : pairs.members()) {
      if (name == kLastApplied) continue;
      items.object([&](ObjectJson& pair) {
        pair.text("key", name);
        pair.text("value", value.text());
      });
    }
  });
}

}  // namespace

void write_metadata(ObjectJson& out, const ObjectState& state, JsonView metadata,
                    const ViewContext& context) {
  const auto& key = state.key;
  out.text("group", key.group);
  out.text("version", state.version);
  out.text("kind", key.kind);
  out.text("name", key.name);
  out.text_or_null("description", metadata["annotations"]["codefresh.io/description"].text());
  out.text("namespace", key.object_namespace);
  out.text("runtime", key.runtime);
  out.text_or_null("cluster", state.destination);
  out.text("account", context.account);
  write_pairs(out, "labels", metadata["labels"]);
  write_pairs(out, "annotations", metadata["annotations"]);
  out.time_or_null("lastUpdated", state.changed_at);
  out.time_or_null("created", state.created_at);
  out.text("uid", state.uid);
  out.flag("favorite", false);
}

std::string metadata_json(const ObjectState& state, JsonView metadata, const ViewContext& context) {
  return object_json([&](ObjectJson& out) { write_metadata(out, state, metadata, context); });
}

void write_states(ObjectJson& out, const ObjectState& state) {
  out.text("syncStatus", to_string(state.sync));
  out.text_or_null("healthStatus", to_string(state.health));
  out.text_or_null("healthMessage", state.health_message);
}

void write_enum(ObjectJson& out, std::string_view key, std::string_view word,
                std::initializer_list<std::string_view> known) {
  const bool is_known = std::ranges::find(known, word) != known.end();
  out.text_or_null(key, is_known ? word : std::string_view());
}

void write_entity_source(ObjectJson& out, std::string_view key, const ParsedBody& body) {
  const auto source = body.source();
  if (!source.is_object()) {
    out.null(key);
    return;
  }
  out.object(key, [&](ObjectJson& at) {
    at.text_or_null("appName", source["appName"].text());
    at.text_or_null("appNamespace", source["appNamespace"].text());
    const auto repository = source["repoURL"].text();
    const auto revision = source["revision"].text();
    at.text_or_null("repoURL", repository);
    at.text_or_null("path", source["path"].text());
    at.text_or_null("revision", revision);
    at.text_or_null("commitMessage", source["commitMessage"].text());
    at.text_or_null("commitDate", source["commitDate"].text());
    at.text_or_null("commitURL", commit_url(repository, revision));
    at.text_or_null("commitAuthor", source["commitAuthor"].text());
    at.text_or_null("gitManifest", body.texts().in_git);
  });
}

void write_error(ArrayJson& out, const EntityError& error, Micros otherwise) {
  out.object([&](ObjectJson& at) {
    at.text("__typename", error.is_sync ? "SyncError" : "HealthError");
    at.text("level", error.is_warning ? "WARNING" : "ERROR");
    at.text("title", error.title);
    at.text("message", error.message);
    at.text_or_null("suggestion", error.suggestion);
    at.text("code", error.code);
    at.text("lastSeen",
            error.last_seen.empty() ? time_text(otherwise) : std::string(error.last_seen));
    at.null("context");
  });
}

void write_reported_errors(ArrayJson& out, JsonView errors, Micros otherwise) {
  for (const auto error : errors.items()) {
    const bool is_sync = error["type"].text() != "health";
    write_error(out,
                {.is_sync = is_sync,
                 .is_warning = error["level"].text() == "warning",
                 .title = is_sync ? "Synchronization failed" : "Not healthy",
                 .message = error["message"].text(),
                 .last_seen = error["lastSeen"].text()},
                otherwise);
  }
}

void write_projects(ObjectJson& out, JsonView metadata) {
  out.array("projects", [&](ArrayJson& items) {
    for (const auto project : list_items(annotation_or_label(metadata, kProject))) {
      items.text(project);
    }
  });
}

bool has_project(JsonView metadata, std::string_view project) {
  const auto projects = list_items(annotation_or_label(metadata, kProject));
  return std::ranges::find(projects, project) != projects.end();
}

std::vector<std::string_view> list_items(std::string_view text) {
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    if (const auto item = trimmed(text.substr(0, end)); !item.empty()) items.push_back(item);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

std::string_view annotation_or_label(JsonView metadata, std::string_view name) {
  const auto annotation = metadata["annotations"][name].text();
  return annotation.empty() ? metadata["labels"][name].text() : annotation;
}

bool is_commit(std::string_view revision) {
  return revision.size() == kCommitDigits &&
         std::ranges::all_of(revision, [](char c) { return hex_value(c) >= 0; });
}

std::string commit_url(std::string_view repository, std::string_view revision) {
  if (!is_commit(revision)) return {};
  std::string url(repository);
  if (url.ends_with(".git")) url.resize(url.size() - 4);
  // "git@host:owner/name" and "ssh://git@host/owner/name" are repositories of the host's pages.
  if (const auto at = url.find('@'); url.starts_with("git@")) {
    url.erase(0, at + 1);
    if (const auto colon = url.find(':'); colon != std::string::npos) url[colon] = '/';
    url.insert(0, "https://");
  } else if (url.starts_with("ssh://git@")) {
    url.replace(0, std::string_view("ssh://git@").size(), "https://");
  }
  if (!url.starts_with("https://") && !url.starts_with("http://")) return {};
  const auto host_begin = url.find("//") + 2;
  const auto host_end = std::min(url.find('/', host_begin), url.size());
  auto host = url.substr(host_begin, host_end - host_begin);
  // The URL is shown without credentials.
  if (const auto at = host.rfind('@'); at != std::string::npos) {
    url.erase(host_begin, at + 1);
    host.erase(0, at + 1);
  }
  if (host.find("gitlab") != std::string::npos) return url + "/-/commit/" + std::string(revision);
  if (host.find("bitbucket") != std::string::npos) {
    return url + "/commits/" + std::string(revision);
  }
  return url + "/commit/" + std::string(revision);
}

}  // namespace gitops::control_plane_server
