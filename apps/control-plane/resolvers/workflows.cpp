#include "control-plane/resolvers/workflows.hpp"

#include <optional>
#include <string>
#include <utility>

#include "control-plane/projection/event.hpp"
#include "control-plane/resolvers/arguments.hpp"
#include "control-plane/views/pipeline_view.hpp"
#include "control-plane/views/workflow_view.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;
using graphql::InputView;

// Adds conditions on the groups and versions of APIs, which all objects of a kind share.
void add_api_conditions(ObjectFilter& filter, InputView filters) {
  if (filters["groups"].items().size() > 0) {
    filter.groups.clear();
    add_all(filter.groups, filters["groups"]);
  }
  add_all(filter.versions, filters["versions"]);
}

// Returns the conditions of WorkflowsFilterArgs that a statement can check.
ObjectFilter workflow_filter(InputView filters) {
  ObjectFilter filter{.kind = "Workflow", .origin = Origin::resource};
  add_given(filter.runtimes, filters["runtime"]);
  add_given(filter.namespaces, filters["namespace"]);
  add_given(filter.destinations, filters["cluster"]);
  add_api_conditions(filter, filters);
  for (const auto& word : filters["statuses"].items()) {
    filter.phases.push_back(phase_of(word.text()));
    // A Workflow has no phase until its controller has seen it.
    if (filter.phases.back() == Phase::pending) filter.phases.push_back(Phase::none);
  }
  return filter;
}

// Returns the conditions of WorkflowsFilterArgs that need the body.
WorkflowConditions workflow_conditions(InputView filters) {
  WorkflowConditions conditions{.started_from = time_of(filters["startDateFrom"].text()),
                                .started_to = time_of(filters["startDateTo"].text())};
  const auto pipelines = filters["pipelines"];
  add_given(conditions.pipelines, pipelines["name"]);
  add_all(conditions.pipelines, pipelines["names"]);
  add_given(conditions.pipeline_namespaces, pipelines["namespace"]);
  add_all(conditions.pipeline_namespaces, pipelines["namespaces"]);
  add_all(conditions.initiators, filters["initiators"]);
  add_all(conditions.origins, filters["originatedFrom"]);
  add_all(conditions.applications, filters["appNames"]);
  add_all(conditions.products, filters["products"]);
  add_all(conditions.environments, filters["environments"]);
  conditions.workflow_template = std::string(filters["workflowTemplate"].text());
  conditions.is_cluster_template = filters["workflowTemplateClusterScope"].is_true();
  for (const auto* about_events : {"repositories", "branches", "eventTypes"}) {
    conditions.has_event_conditions =
        conditions.has_event_conditions || filters[about_events].items().size() > 0;
  }
  return conditions;
}

Task<Result<graphql::Json>> workflows(store::Database& database, Call& call) {
  const auto filters = call["filters"];
  auto window = window_of(call, kObjectKeyNumbers);
  if (!window) co_return std::unexpected(std::move(window.error()));
  const auto& caller = caller_of(call);
  ObjectList list{.filter = workflow_filter(filters), .window = std::move(*window)};
  auto conditions = workflow_conditions(filters);
  auto project = std::string(filters["project"].text());
  if (!conditions.is_empty() || !project.empty()) {
    list.accepts = [conditions = std::move(conditions), project = std::move(project)](
                       const ObjectState& state, const ParsedBody& body) {
      return matches(conditions, state, body.live()) &&
             (project.empty() || has_project(body.live()["metadata"], project));
    };
  }
  auto slice = co_await database.read(
      call.deadline(), [account = caller.account->number, list = std::move(list),
                        context = view_context(caller)](store::Connection& db) mutable {
        list.append = [&context](std::string& out, const ObjectState& state,
                                 const ParsedBody& body) {
          append_workflow(out, state, body, context);
        };
        return object_slice(db, account, list);
      });
  if (!slice) co_return std::unexpected(std::move(slice.error()));
  co_return graphql::Json::trusted(std::move(*slice));
}

Task<Result<std::optional<graphql::Json>>> workflow(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  auto found = co_await database.read(
      call.deadline(),
      [account = caller.account->number, uid = std::string(call["uid"].text()),
       context =
           view_context(caller)](store::Connection& db) -> Result<std::optional<std::string>> {
        const auto row = find_object_by_uid(db, account, "Workflow", uid, BodyUse::read);
        if (!row) return std::unexpected(row.error());
        if (!*row) return std::optional<std::string>();
        ParsedBody body;
        body.read((*row)->body);
        std::string out;
        append_workflow(out, (*row)->state, body, context);
        return std::optional<std::string>(std::move(out));
      });
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (!*found) co_return std::optional<graphql::Json>();
  co_return std::optional(graphql::Json::trusted(std::move(**found)));
}

Task<Result<graphql::Json>> pipelines(store::Database& database, Call& call) {
  const auto filters = call["filters"];
  auto window = window_of(call, kObjectKeyNumbers);
  if (!window) co_return std::unexpected(std::move(window.error()));
  const auto& caller = caller_of(call);
  ObjectList list{.filter = {.kind = "Sensor"}, .window = std::move(*window)};
  add_given(list.filter.runtimes, filters["runtime"]);
  add_given(list.filter.namespaces, filters["namespace"]);
  add_given(list.filter.destinations, filters["cluster"]);
  add_given(list.filter.names, filters["name"]);
  add_api_conditions(list.filter, filters);
  auto workflow_template = std::string(filters["workflowTemplate"].text());
  auto project = std::string(filters["project"].text());
  if (!workflow_template.empty() || !project.empty()) {
    list.accepts = [workflow_template = std::move(workflow_template), project = std::move(project)](
                       const ObjectState&, const ParsedBody& body) {
      const auto sensor = body.live();
      return (workflow_template.empty() || uses_template(sensor, workflow_template)) &&
             (project.empty() || has_project(sensor["metadata"], project));
    };
  }
  auto slice = co_await database.read(
      call.deadline(), [account = caller.account->number, list = std::move(list),
                        context = view_context(caller)](store::Connection& db) mutable {
        list.append = [&context](std::string& out, const ObjectState& state,
                                 const ParsedBody& body) {
          append_pipeline(out, state, body, context);
        };
        return object_slice(db, account, list);
      });
  if (!slice) co_return std::unexpected(std::move(slice.error()));
  co_return graphql::Json::trusted(std::move(*slice));
}

Task<Result<std::optional<graphql::Json>>> pipeline(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  const ObjectName name{.kind = "Sensor",
                        .runtime = std::string(call["runtime"].text()),
                        .object_namespace = std::string(call["namespace"].text()),
                        .name = std::string(call["name"].text())};
  auto found = co_await database.read(
      call.deadline(),
      [account = caller.account->number, name, context = view_context(caller)](
          store::Connection& db) -> Result<std::optional<std::string>> {
        const auto row = find_object(db, account, name, BodyUse::read);
        if (!row) return std::unexpected(row.error());
        if (!*row) return std::optional<std::string>();
        ParsedBody body;
        body.read((*row)->body);
        std::string out;
        append_pipeline(out, (*row)->state, body, context);
        return std::optional<std::string>(std::move(out));
      });
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (!*found) co_return std::optional<graphql::Json>();
  co_return std::optional(graphql::Json::trusted(std::move(**found)));
}

}  // namespace

std::vector<FieldRow> workflow_rows(Dependencies& dependencies) {
  const auto of_database = [&database = dependencies.database](auto function) {
    return [&database, function](Call& call) { return function(database, call); };
  };
  return {
      read("workflows", Permission::member, of_database(workflows)),
      read("workflow", Permission::member, of_database(workflow)),
      read("pipelines", Permission::member, of_database(pipelines)),
      read("pipeline", Permission::member, of_database(pipeline)),
  };
}

}  // namespace gitops::control_plane_server
