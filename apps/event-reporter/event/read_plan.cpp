#include "event-reporter/event/read_plan.hpp"

#include <set>
#include <string>
#include <tuple>

namespace gitops::reporter {
namespace {

// The list of revisions, or else the single one; empty when the object has neither.
std::vector<std::string_view> revision_list(JsonView object, std::string_view several,
                                            std::string_view single) {
  std::vector<std::string_view> out;
  if (object[several].is_array()) {
    for (const auto entry : object[several].items()) out.push_back(entry.text());
  } else if (const auto one = object[single].text(); !one.empty()) {
    out.push_back(one);
  }
  return out;
}

std::vector<ReadPlan::Commit> commits(const AppView& app,
                                      const std::vector<std::string_view>& revisions) {
  std::vector<ReadPlan::Commit> out;
  for (std::size_t i = 0; i < revisions.size(); ++i) {
    const auto source = app.source(i);
    out.push_back({.revision = std::string(revisions[i]),
                   .source_index = static_cast<int>(i),
                   .repo_url = std::string(source["repoURL"].text()),
                   .has_metadata = !revisions[i].empty() && source["chart"].text().empty()});
  }
  return out;
}

// The parent's name in the application's tracking label or annotation; empty without one of this
// installation.
std::string_view tracked_parent(const AppView& app, const TrackingSettings& settings) {
  if (settings.method == "label") {
    return app.metadata()["labels"][settings.instance_label_key].text();
  }
  const auto annotations = app.metadata()["annotations"];
  const auto id = annotations["argocd.argoproj.io/tracking-id"].text();
  const auto installation = annotations["argocd.argoproj.io/installation-id"].text();
  if (!id.contains(':') || installation != settings.installation_id) return {};
  return id.substr(0, id.find(':'));
}

std::optional<k8s::ObjectKey> parent_of(const AppView& app, const TrackingSettings& settings) {
  const auto name = tracked_parent(app, settings);
  if (name.empty()) return std::nullopt;
  k8s::ObjectKey key{.ns = settings.argocd_namespace, .name = std::string(name)};
  if (const auto split = name.find('_'); split != std::string_view::npos) {
    key = {.ns = std::string(name.substr(0, split)), .name = std::string(name.substr(split + 1))};
  }
  if (key.name == app.name() && key.ns == app.ns()) return std::nullopt;  // manages itself
  return key;
}

}  // namespace

std::vector<argo::ObjectFilter> split_read(const argo::ObjectFilter& only,
                                           const std::vector<ResourceId>& resources) {
  constexpr std::size_t kMostReads = 200;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> parts;
  std::set<std::string> namespaces;
  std::vector<const ResourceId*> selected;
  for (const auto& id : resources) {
    if (id.group == kApplicationGroup && id.kind == kApplicationKind) continue;
    if (!only.kind.empty() && (id.kind != only.kind || id.group != only.group)) continue;
    if (!only.ns.empty() && id.ns != only.ns) continue;
    selected.push_back(&id);
    namespaces.insert(id.ns);
  }
  if (!only.name.empty()) return {};
  for (const auto* id : selected) {
    if (only.kind.empty()) {
      parts.emplace(id->group, id->kind, "", "");
    } else if (only.ns.empty() && !id->ns.empty() && namespaces.size() > 1) {
      parts.emplace(id->group, id->kind, id->ns, "");
    } else {
      parts.emplace(id->group, id->kind, id->ns, id->name);
    }
  }
  if (parts.size() > kMostReads) return {};
  std::vector<argo::ObjectFilter> out;
  for (const auto& [group, kind, ns, name] : parts) {
    out.push_back({.group = group, .kind = kind, .ns = ns, .name = name});
  }
  return out;
}

ReadPlan plan_reads(const AppView& app, const TrackingSettings& settings) {
  ReadPlan plan;
  plan.app = {.name = std::string(app.name()),
              .ns = std::string(app.ns()),
              .project = std::string(app.project())};
  plan.parent = parent_of(app, settings);
  plan.being_deleted = app.deleting();

  auto synced = revision_list(app.sync_operation(), "revisions", "revision");
  if (synced.empty()) synced = revision_list(app.status()["sync"], "revisions", "revision");
  plan.sync_revisions = commits(app, synced);
  plan.change_revisions =
      commits(app, revision_list(app.sync_operation(), "changeRevisions", "changeRevision"));
  return plan;
}

}  // namespace gitops::reporter
