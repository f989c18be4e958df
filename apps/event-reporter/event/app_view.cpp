#include "event-reporter/event/app_view.hpp"

#include <algorithm>
#include <utility>

#include "common/core/encoding.hpp"

namespace gitops::reporter {
namespace {

JsonView nth(JsonView list, std::size_t index) {
  for (const auto item : list.items()) {
    if (index-- == 0) return item;
  }
  return {};
}

std::vector<JsonView> list_of(JsonView items) {
  std::vector<JsonView> out;
  for (const auto item : items.items()) out.push_back(item);
  return out;
}

bool is_ref(JsonView source) {
  return !source["ref"].text().empty();
}

// Returns false for a chart and for an OCI artifact.
bool is_git(JsonView source) {
  return source["chart"].text().empty() && !source["repoURL"].text().starts_with("oci://");
}

// Returns the index of the main one of a list of sources.
std::size_t main_in(JsonView sources) {
  std::size_t index = 0;
  for (const auto source : sources.items()) {
    if (!is_ref(source)) return index;
    ++index;
  }
  return 0;
}

}  // namespace

Result<AppView> AppView::parse(std::string text) {
  AppView app;
  app.text_ = std::make_unique<const std::string>(std::move(text));
  auto parsed = app.document_.parse(*app.text_, "the Application");
  if (!parsed) return std::unexpected(parsed.error());
  app.root_ = *parsed;
  if (app.name().empty()) return fail(ErrorCode::invalid_data, "the Application has no name");
  return app;
}

std::vector<ResourceId> AppView::resource_ids() const {
  std::vector<ResourceId> ids;
  for (const auto resource : status()["resources"].items()) {
    auto id = ResourceId::of(resource);
    if (is_application(id)) continue;
    ids.push_back(std::move(id));
  }
  return ids;
}

std::string_view AppView::cluster() const {
  return root_["spec"]["destination"]["server"].text();
}

std::string AppView::started_at() const {
  return go_time(operation_state()["startedAt"].text());
}

std::string AppView::finished_at() const {
  return go_time(operation_state()["finishedAt"].text());
}

JsonView AppView::source(std::size_t index) const {
  const auto sources = root_["spec"]["sources"];
  if (sources.items().size() > 0) return nth(sources, index);
  return index == 0 ? root_["spec"]["source"] : JsonView();
}

// The order is that of Argo CD's ApplicationSpec.GetSources().
std::string_view AppView::repo_url(std::size_t index) const {
  const auto hydrator = root_["spec"]["sourceHydrator"];
  if (!hydrator.is_object()) return source(index)["repoURL"].text();
  if (index > 0) return {};
  const auto synced = hydrator["syncSource"]["repoURL"].text();
  return synced.empty() ? hydrator["drySource"]["repoURL"].text() : synced;
}

std::string_view AppView::repo_url() const {
  return repo_url(root_["spec"]["sourceHydrator"].is_object() ? 0
                                                              : main_in(root_["spec"]["sources"]));
}

std::vector<AppView::SourceRevision> AppView::revisions_in(JsonView object,
                                                           JsonView sources) const {
  const auto source_at = [&](std::size_t index) {
    auto named =
        sources["sources"].items().size() > 0 ? nth(sources["sources"], index) : sources["source"];
    return named["repoURL"].text().empty() ? source(index) : named;
  };
  std::vector<SourceRevision> out;
  for (const auto entry : object["revisions"].items()) {
    out.push_back({.revision = entry.text(), .source = source_at(out.size())});
  }
  const auto single = object["revision"].text();
  if (out.empty() && !single.empty()) out.push_back({.revision = single, .source = source_at(0)});
  return out;
}

std::vector<AppView::SourceRevision> AppView::deployed() const {
  const auto result = operation_state()["syncResult"];
  auto synced = revisions_in(result, result);
  // A sync that failed early has only the requested revisions.
  const auto is_unresolved = [](const SourceRevision& each) {
    return is_git(each.source) && !may_be_commit(each);
  };
  if (!synced.empty() && std::ranges::none_of(synced, is_unresolved)) return synced;
  const auto compared = status()["sync"];
  return revisions_in(compared, compared["comparedTo"]);
}

std::size_t AppView::main_deployed() const {
  std::vector<JsonView> sources;
  for (const auto& each : deployed()) sources.push_back(each.source);
  return main_of(sources);
}

std::vector<AppView::SourceRevision> AppView::change_revisions() const {
  const auto last = operation_state()["operation"]["sync"];
  const auto operation = last.exists() ? last : root_["operation"]["sync"];
  std::vector<SourceRevision> out;
  for (const auto entry : operation["changeRevisions"].items()) {
    out.push_back({.revision = entry.text(), .source = source(out.size())});
  }
  const auto single = operation["changeRevision"].text();
  if (out.empty() && !single.empty()) out.push_back({.revision = single, .source = source(0)});
  return out;
}

std::optional<std::int64_t> AppView::find_in_history(std::size_t index,
                                                     const SourceRevision& revision) const {
  std::optional<std::int64_t> found;
  for (const auto entry : status()["history"].items()) {
    const auto revisions = revisions_in(entry, entry);
    if (index >= revisions.size() || !entry["id"].is_integer()) continue;
    const auto& deployed = revisions[index];
    if (deployed.revision == revision.revision &&
        deployed.source["repoURL"].text() == revision.source["repoURL"].text()) {
      found = entry["id"].number();
    }
  }
  return found;
}

std::string_view AppView::latest_revision() const {
  if (const auto history = last_history()) return revision_in(*history, *history);
  return revision_in(status()["sync"], status()["sync"]["comparedTo"]);
}

std::string_view AppView::operation_revision() const {
  for (const auto operation :
       {operation_state()["syncResult"], operation_state()["operation"]["sync"],
        root_["operation"]["sync"]}) {
    const auto revision = revision_in(operation, operation);
    if (!revision.empty()) return revision;
  }
  return revision_in(status()["sync"], status()["sync"]["comparedTo"]);
}

bool AppView::names_synced_revision() const {
  return !last_history() || latest_revision() == operation_revision();
}

std::string_view AppView::compared_repo_url() const {
  const auto compared = status()["sync"]["comparedTo"];
  const auto single = compared["source"]["repoURL"].text();
  const auto sources = compared["sources"];
  return single.empty() ? nth(sources, main_of(list_of(sources)))["repoURL"].text() : single;
}

std::int64_t AppView::history_id() const {
  const auto history = last_history();
  return history ? (*history)["id"].number() : 0;
}

bool AppView::was_compared() const {
  for (const auto entry : status()["conditions"].items()) {
    const auto type = entry["type"].text();
    // The error of an automated sync or of the deletion comes after the comparison.
    if (type.ends_with("Error") && type != "SyncError" && type != "DeletionError") return false;
  }
  return true;
}

std::optional<JsonView> AppView::last_history() const {
  std::optional<JsonView> last;
  for (const auto entry : status()["history"].items()) last = entry;
  return last;
}

std::string_view AppView::revision_in(JsonView object, JsonView sources) const {
  const auto single = object["revision"].text();
  if (!single.empty()) return single;
  const auto named =
      sources["sources"].items().size() > 0 ? sources["sources"] : root_["spec"]["sources"];
  return nth(object["revisions"], main_of(list_of(named))).text();
}

std::size_t AppView::main_of(const std::vector<JsonView>& sources) const {
  const auto present = root_["spec"]["sources"];
  const auto is_same = [](JsonView a, JsonView b) {
    return a["repoURL"].text() == b["repoURL"].text();
  };
  if (std::ranges::equal(sources, present.items(), is_same)) return main_in(present);
  const auto found = std::ranges::find_if_not(sources, is_ref);
  return found == sources.end() ? 0 : static_cast<std::size_t>(found - sources.begin());
}

bool may_be_commit(const AppView::SourceRevision& revision) {
  const auto name = revision.revision;
  if (name.empty() || !is_git(revision.source)) return false;
  if (std::ranges::all_of(name, [](char c) { return hex_value(c) >= 0; })) return true;
  // Argo CD writes hashes. A version, a digest or a path has other characters than a hash, and a
  // revision with the name of the target was never resolved.
  const auto is_alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return std::ranges::all_of(name, is_alphanumeric) && name != "HEAD" &&
         name != revision.source["targetRevision"].text();
}

void SyncResults::read(const AppView& app) {
  for (const auto result : app.operation_state()["syncResult"]["resources"].items()) {
    if (result["syncPhase"].text() == "Sync") by_identity_.try_emplace(identity_of(result), result);
  }
}

JsonView SyncResults::find(const std::string& identity) const {
  const auto found = by_identity_.find(identity);
  return found == by_identity_.end() ? JsonView{} : found->second;
}

std::string go_time(std::string_view text) {
  const auto time = parse_rfc3339(text);
  return time ? format_rfc3339(*time) : std::string{};
}

std::string go_time_or(std::string_view text, WallTime otherwise) {
  const auto time = parse_rfc3339(text);
  return format_rfc3339(time ? *time : otherwise);
}

}  // namespace gitops::reporter
