#include "control-plane/resolvers/releases.hpp"

#include <optional>
#include <string>
#include <utility>

#include "control-plane/resolvers/arguments.hpp"
#include "control-plane/resolvers/visible.hpp"
#include "control-plane/views/release_view.hpp"
#include "control-plane/views/rollout_view.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;
using graphql::InputView;

ReleaseFilter release_filter(InputView filters) {
  ReleaseFilter filter{.group = std::string(filters["appGroupName"].text()),
                       .has_issues_only = filters["jiraReportFilter"].is_true()};
  add_given(filter.runtimes, filters["runtime"]);
  add_given(filter.names, filters["name"]);
  add_given(filter.namespaces, filters["namespace"]);
  if (filters["historyId"].exists()) filter.history_id = filters["historyId"].integer();
  for (const auto* from : {"startDate", "syncStartDateFrom"}) {
    filter.started_from = std::max(filter.started_from, time_of(filters[from].text()));
  }
  for (const auto* to : {"endDate", "syncStartDateTo"}) {
    const auto time = time_of(filters[to].text());
    if (time > 0 && (filter.started_to == 0 || time < filter.started_to)) filter.started_to = time;
  }
  add_given(filter.issues, filters["issueKey"]);
  add_all(filter.issues, filters["issueKeys"]);
  add_given(filter.pull_requests, filters["prKey"]);
  add_all(filter.pull_requests, filters["prKeys"]);
  add_given(filter.committers, filters["committer"]);
  add_all(filter.committers, filters["committers"]);
  return filter;
}

ReleaseOrder release_order(std::string_view field) {
  if (field == "healthStatus") return ReleaseOrder::health;
  if (field == "historyId") return ReleaseOrder::history;
  if (field == "syncStatus") return ReleaseOrder::sync;
  return ReleaseOrder::created;
}

Task<Result<graphql::Json>> gitops_releases(store::Database& database, Call& call) {
  auto window = window_of(call, kReleaseKeyNumbers);
  if (!window) co_return std::unexpected(std::move(window.error()));
  const auto who = call.context<RequestContext>().caller;
  const auto& caller = *who;
  ReleaseList list{
      .filter = release_filter(call["filters"]),
      .order = release_order(call["sort"]["field"].text()),
      .is_descending = call["sort"]["order"].text_or("desc") == "desc",
      .window = std::move(*window),
      .with_application =
          selects_any(call, {"labels", "annotations", "description", "destination", "commitUrl",
                             "specSources", "operationState", "childApps"}),
      .with_services = selects_any(call, {"fromState", "toState", "transition"}),
      .with_images = selects_any(call, {"issues", "prs", "committers", "builds", "images"})};
  auto slice = co_await database.read(
      call.deadline(),
      [who, account = caller.account->number, list = std::move(list),
       context = view_context(caller)](store::Connection& db) mutable -> Result<std::string> {
        const auto visibility = visibility_of(db, *who);
        if (!visibility) return std::unexpected(visibility.error());
        if (visibility->is_nothing()) return empty_slice_json();
        if (!visibility->is_everything()) {
          list.with_application = list.with_application || visibility->needs_body();
          list.accepts = [&visibility](const ObjectState& state, JsonView application) {
            return visibility->shows(state, application);
          };
        }
        return release_slice(db, account, list, context);
      });
  if (!slice) co_return std::unexpected(std::move(slice.error()));
  co_return graphql::Json::trusted(std::move(*slice));
}

Task<Result<std::optional<graphql::Json>>> rollout_step_status(store::Database& database,
                                                               Call& call) {
  const StepQuestion question{.runtime = std::string(call["runtime"].text()),
                              .application_namespace = std::string(call["appNamespace"].text()),
                              .application = std::string(call["appName"].text()),
                              .commit = std::string(call["commitSHA"].text()),
                              .rollout = std::string(call["rollout"].text()),
                              .step = call["stepIndex"].integer()};
  const auto status = co_await database.read(
      call.deadline(),
      [who = call.context<RequestContext>().caller,
       question](store::Connection& db) -> Result<std::optional<StepStatus>> {
        const auto account = who->account->number;
        const auto visibility = visibility_of(db, *who);
        if (!visibility) return std::unexpected(visibility.error());
        if (!visibility->is_everything()) {
          const auto application = find_visible(db, account,
                                                {.runtime = question.runtime,
                                                 .object_namespace = question.application_namespace,
                                                 .name = question.application},
                                                *visibility);
          if (!application) return std::unexpected(application.error());
          if (!*application) return std::optional<StepStatus>();
        }
        return find_step_status(db, account, question);
      });
  if (!status) co_return std::unexpected(status.error());
  if (!*status) co_return std::optional<graphql::Json>();
  co_return std::optional(graphql::Json::trusted(
      object_json([&status](ObjectJson& out) { out.text("status", to_string(**status)); })));
}

}  // namespace

std::vector<FieldRow> release_rows(Dependencies& dependencies) {
  auto& database = dependencies.database;
  return {
      read("gitopsReleases", Permission::member,
           [&database](Call& call) { return gitops_releases(database, call); }),
      read("rolloutStepStatus", Permission::member,
           [&database](Call& call) { return rollout_step_status(database, call); }),
  };
}

}  // namespace gitops::control_plane_server
