#include "control-plane/resolvers/applications.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "control-plane/projection/event.hpp"
#include "control-plane/resolvers/arguments.hpp"
#include "control-plane/resolvers/visible.hpp"
#include "control-plane/views/application_view.hpp"
#include "control-plane/views/component_view.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;
using graphql::InputView;

constexpr std::string_view kGitSourceEntity = "git-source";
constexpr std::string_view kComponentEntity = "component";

BodyUse application_bodies(const Call& call) {
  return selects_any(call, kApplicationBodyFields) ? BodyUse::read : BodyUse::skip;
}

// Returns the states that words of the schema denote.
std::vector<SyncStatus> sync_states(InputView words) {
  std::vector<SyncStatus> states;
  for (const auto& word : words.items()) {
    for (const auto state :
         {SyncStatus::unknown, SyncStatus::synced, SyncStatus::out_of_sync, SyncStatus::syncing}) {
      if (to_string(state) == word.text()) states.push_back(state);
    }
  }
  return states;
}

std::vector<HealthStatus> health_states(InputView words) {
  std::vector<HealthStatus> states;
  for (const auto& word : words.items()) {
    for (const auto state : {HealthStatus::healthy, HealthStatus::progressing,
                             HealthStatus::degraded, HealthStatus::suspended, HealthStatus::missing,
                             HealthStatus::unknown, HealthStatus::terminated}) {
      if (to_string(state) == word.text()) states.push_back(state);
    }
    // An object with unknown health is shown without health.
    if (word.text() == to_string(HealthStatus::unknown)) states.push_back(HealthStatus::none);
  }
  return states;
}

// Returns the conditions of ApplicationsFilterArgs that a statement can check.
ObjectFilter application_filter(InputView filters) {
  ObjectFilter filter;
  add_given(filter.runtimes, filters["runtime"]);
  add_all(filter.runtimes, filters["runtimes"]);
  add_all(filter.names, filters["applications"]);
  filter.name_part = std::string(filters["applicationName"].text());
  add_given(filter.namespaces, filters["namespace"]);
  add_all(filter.namespaces, filters["namespaces"]);
  add_given(filter.destinations, filters["clusterUrl"]);
  add_all(filter.destinations, filters["clusterUrls"]);
  filter.syncs = sync_states(filters["statuses"]);
  filter.healths = health_states(filters["healthStatuses"]);
  add_all(filter.labels, filters["labels"]);
  add_all(filter.versions, filters["versions"]);
  if (filters["groups"].items().size() > 0) {
    filter.groups.clear();
    add_all(filter.groups, filters["groups"]);
  }
  filter.is_inactive = filters["inactive"].is_true();
  if (filters["excludeGitSources"].is_true()) {
    filter.other_entities.emplace_back(kGitSourceEntity);
  }
  if (!filters["includeComponents"].is_true()) {
    filter.other_entities.emplace_back(kComponentEntity);
  }
  // "Application" and "GitSource" both denote Applications. A list has either Applications or ApplicationSets.
  const auto kinds = filters["kinds"].texts();
  const auto has_kind = [&kinds](std::string_view kind) {
    return kinds.empty() || std::ranges::find(kinds, kind) != kinds.end();
  };
  if (!has_kind("Application")) {
    if (has_kind("GitSource")) {
      filter.entities.emplace_back(kGitSourceEntity);
    } else {
      filter.kind = kinds.front();
    }
  }
  return filter;
}

// The conditions of ApplicationsFilterArgs about groups and projects, which need the body.
struct GroupCondition {
  std::vector<std::string> groups = {};
  std::optional<bool> has_groups = {};
  std::string project = {};

  [[nodiscard]] bool is_empty() const { return groups.empty() && !has_groups && project.empty(); }
  [[nodiscard]] bool accepts(JsonView application) const {
    const auto own = application_groups(application);
    if (has_groups && *has_groups == own.empty()) return false;
    const bool has_group = groups.empty() || std::ranges::any_of(own, [this](auto group) {
                             return std::ranges::find(groups, group) != groups.end();
                           });
    return has_group && (project.empty() || has_project(application["metadata"], project));
  }
};

GroupCondition group_condition(InputView filters) {
  GroupCondition condition{.project = std::string(filters["project"].text())};
  add_all(condition.groups, filters["appGroups"]);
  if (filters["hasAppGroups"].exists()) condition.has_groups = filters["hasAppGroups"].is_true();
  return condition;
}

Task<Result<graphql::Json>> applications(store::Database& database, Call& call) {
  const auto filters = call["filters"];
  // Favorites are not supported yet, so no Application is one.
  if (filters["favorite"].is_true()) co_return graphql::Json::trusted(empty_slice_json());
  auto window = window_of(call, kObjectKeyNumbers);
  if (!window) co_return std::unexpected(std::move(window.error()));
  const auto who = call.context<RequestContext>().caller;
  const auto& caller = *who;
  ObjectList list{.filter = application_filter(filters),
                  .window = std::move(*window),
                  .bodies = application_bodies(call)};
  if (auto condition = group_condition(filters); !condition.is_empty()) {
    list.bodies = BodyUse::read;
    list.accepts = [condition = std::move(condition)](const ObjectState&, const ParsedBody& body) {
      return condition.accepts(body.live());
    };
  }
  auto slice = co_await database.read(
      call.deadline(),
      [who, account = caller.account->number, list = std::move(list),
       context = view_context(caller)](store::Connection& db) mutable -> Result<std::string> {
        const auto visibility = visibility_of(db, *who);
        if (!visibility) return std::unexpected(visibility.error());
        if (!limit_to_visible(list, *visibility)) return empty_slice_json();
        auto runtimes = runtimes_with_resource_reporter(db, account);
        if (!runtimes) return std::unexpected(std::move(runtimes.error()));
        context.rollout_runtimes = std::move(*runtimes);
        list.append = [&context](std::string& out, const ObjectState& state,
                                 const ParsedBody& body) {
          append_application(out, state, body, context);
        };
        return object_slice(db, account, list);
      });
  if (!slice) co_return std::unexpected(std::move(slice.error()));
  co_return graphql::Json::trusted(std::move(*slice));
}

Task<Result<std::optional<graphql::Json>>> application(store::Database& database, Call& call) {
  const auto who = call.context<RequestContext>().caller;
  const auto& caller = *who;
  const ObjectName name{.runtime = std::string(call["runtime"].text()),
                        .object_namespace = std::string(call["namespace"].text()),
                        .name = std::string(call["name"].text())};
  auto found = co_await database.read(
      call.deadline(),
      [who, account = caller.account->number, name, context = view_context(caller)](
          store::Connection& db) mutable -> Result<std::optional<std::string>> {
        const auto visibility = visibility_of(db, *who);
        if (!visibility) return std::unexpected(visibility.error());
        const auto row = find_visible(db, account, name, *visibility);
        if (!row) return std::unexpected(row.error());
        if (!*row) return std::optional<std::string>();
        auto runtimes = runtimes_with_resource_reporter(db, account);
        if (!runtimes) return std::unexpected(std::move(runtimes.error()));
        context.rollout_runtimes = std::move(*runtimes);
        ParsedBody body;
        body.read((*row)->body);
        std::string out;
        append_application(out, (*row)->state, body, context, ApplicationParts::whole);
        return std::optional<std::string>(std::move(out));
      });
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (!*found) co_return std::optional<graphql::Json>();
  co_return std::optional(graphql::Json::trusted(std::move(**found)));
}

Task<Result<graphql::Json>> components(store::Database& database, Call& call) {
  auto window = window_of(call, kObjectKeyNumbers);
  if (!window) co_return std::unexpected(std::move(window.error()));
  const auto& caller = caller_of(call);
  auto slice = co_await database.read(
      call.deadline(),
      [account = caller.account->number, runtime = std::string(call["runtime"].text()),
       window = std::move(*window),
       context = view_context(caller)](store::Connection& db) mutable -> Result<std::string> {
        auto runtimes = runtimes_with_resource_reporter(db, account);
        if (!runtimes) return std::unexpected(std::move(runtimes.error()));
        context.rollout_runtimes = std::move(*runtimes);
        return component_slice(db, account, runtime, window, context);
      });
  if (!slice) co_return std::unexpected(std::move(slice.error()));
  co_return graphql::Json::trusted(std::move(*slice));
}

}  // namespace

std::vector<FieldRow> application_rows(Dependencies& dependencies) {
  const auto of_database = [&database = dependencies.database](auto function) {
    return [&database, function](Call& call) { return function(database, call); };
  };
  return {
      read("application", Permission::member, of_database(application)),
      read("applications", Permission::member, of_database(applications)),
      read("components", Permission::member, of_database(components)),
  };
}

}  // namespace gitops::control_plane_server
