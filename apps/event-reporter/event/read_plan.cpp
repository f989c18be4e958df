#include "event-reporter/event/read_plan.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace gitops::reporter {
namespace {

// Returns the commits to read. Argo CD looks a revision up in the repository of the application's
// present source, which may have changed, or in that of an entry of the history.
std::vector<ReadPlan::Commit> commits(const AppView& app,
                                      const std::vector<AppView::SourceRevision>& revisions) {
  std::vector<ReadPlan::Commit> out;
  for (std::size_t i = 0; i < revisions.size(); ++i) {
    const auto repo_url = revisions[i].source["repoURL"].text();
    ReadPlan::Commit commit{.revision = std::string(revisions[i].revision),
                            .source_index = static_cast<int>(i),
                            .repo_url = std::string(repo_url),
                            .has_metadata = may_be_commit(revisions[i])};
    if (commit.has_metadata && repo_url != app.repo_url(i)) {
      commit.history_id = app.find_in_history(i, revisions[i]);
      commit.has_metadata = commit.history_id.has_value();
    }
    out.push_back(std::move(commit));
  }
  return out;
}

// Returns the parent's name in the application's tracking label or annotation; empty without one of
// this installation.
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

// Returns whether an API server may have an object or a namespace of this name (RFC 1123).
bool is_name(std::string_view text) {
  constexpr std::size_t kMaxLength = 253;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  const auto ends = [](char c) { return c != '-' && c != '.'; };
  return !text.empty() && text.size() <= kMaxLength && std::ranges::all_of(text, allowed) &&
         ends(text.front()) && ends(text.back());
}

// Returns the parent. The mark is only a hint, since anybody can write it. A mark that names no
// object is ignored.
std::optional<k8s::ObjectKey> parent_of(const AppView& app, const TrackingSettings& settings) {
  const auto name = tracked_parent(app, settings);
  if (name.empty()) return std::nullopt;
  k8s::ObjectKey key{.ns = settings.argocd_namespace, .name = std::string(name)};
  if (const auto split = name.find('_'); split != std::string_view::npos) {
    key = {.ns = std::string(name.substr(0, split)), .name = std::string(name.substr(split + 1))};
  }
  if (!is_name(key.name) || !is_name(key.ns)) return std::nullopt;
  if (key.name == app.name() && key.ns == app.ns()) return std::nullopt;  // manages itself
  return key;
}

}  // namespace

std::vector<argo::ObjectFilter> split_read(const argo::ObjectFilter& only,
                                           const std::vector<ResourceId>& resources) {
  constexpr std::size_t kMaxReads = 200;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> parts;
  std::set<std::string> namespaces;
  std::vector<const ResourceId*> selected;
  for (const auto& id : resources) {
    if (is_application(id)) continue;
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
  if (parts.size() > kMaxReads) return {};
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

  plan.sync_revisions = commits(app, app.deployed());
  plan.change_revisions = commits(app, app.change_revisions());
  return plan;
}

}  // namespace gitops::reporter
