#include "event-reporter/event/app_view.hpp"

#include <utility>

namespace gitops::reporter {
namespace {

JsonView nth(JsonView list, std::size_t index) {
  for (const auto item : list.items()) {
    if (index-- == 0) return item;
  }
  return {};
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
    ids.push_back(ResourceId::of(resource));
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
  return sources.items().size() > 0 ? nth(sources, index) : root_["spec"]["source"];
}

std::size_t AppView::main_source() const {
  std::size_t index = 0;
  for (const auto source : root_["spec"]["sources"].items()) {
    if (source["ref"].text().empty()) return index;
    ++index;
  }
  return 0;
}

JsonView AppView::sync_operation() const {
  const auto last = operation_state()["operation"]["sync"];
  return last.exists() ? last : root_["operation"]["sync"];
}

std::string_view AppView::latest_revision() const {
  const auto history = last_history();
  return revision_in(history ? *history : status()["sync"]);
}

std::string_view AppView::operation_revision() const {
  for (const auto operation :
       {operation_state()["operation"]["sync"], root_["operation"]["sync"]}) {
    const auto revision = revision_in(operation);
    if (!revision.empty()) return revision;
  }
  return revision_in(status()["sync"]);
}

bool AppView::names_synced_revision() const {
  return !last_history() || latest_revision() == operation_revision();
}

std::string_view AppView::compared_repo_url() const {
  const auto compared = status()["sync"]["comparedTo"];
  const auto single = compared["source"]["repoURL"].text();
  return single.empty() ? nth(compared["sources"], main_source())["repoURL"].text() : single;
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

std::string_view AppView::revision_in(JsonView object) const {
  const auto single = object["revision"].text();
  return single.empty() ? nth(object["revisions"], main_source()).text() : single;
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
