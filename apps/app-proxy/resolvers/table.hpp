#pragma once

#include <string_view>
#include <vector>

#include "app-proxy/resolvers/field_row.hpp"
#include "app-proxy/resolvers/git_sources.hpp"
#include "app-proxy/resolvers/tool_integrations.hpp"
#include "app-proxy/resolvers/version.hpp"
#include "app-proxy/users/audit.hpp"

namespace gitops::app_proxy {

class ApplicationActions;
class Committer;
class GitIntegrations;
class LogStreams;
class ManagedClusters;
class RolloutActions;
class TreeReader;
class WorkflowActions;

// What the resolvers work with. App owns all of it; it outlives the engine.
struct ResolverDependencies {
  const VersionInfo& version;
  GitIntegrations* git_integrations = nullptr;  // null: no access to the cluster
  Committer* committer = nullptr;               // null: the same, or no folder for clones
  TreeReader* reader = nullptr;                 // null: with the committer
  k8s::Client* cluster = nullptr;               // null: no access to the cluster
  RuntimeFiles files = {};
  ToolIntegrationParts tools = {};
  ManagedClusters* clusters = nullptr;         // null: no access to the cluster
  ApplicationActions* applications = nullptr;  // null: no Argo CD is configured
  WorkflowActions* workflows = nullptr;        // null: no Argo Workflows are configured
  RolloutActions* rollouts = nullptr;          // null: no access to the cluster
  LogStreams* logs = nullptr;                  // null: before the start
};

// The one list of all fields of Query, Mutation and Subscription: who may ask for each, and its function. A new
// field is a line of schema.graphql and a row here.
std::vector<FieldRow> table(const ResolverDependencies& dependencies);

// These rows behind the checks of their permissions. Each call of one that changes state is written to
// `audit`, which outlives what is returned.
graphql::Resolvers guarded(const std::vector<FieldRow>& rows, Audit& audit);
// The same with the rows of all object types: what schema.graphql asks for. Engine::make() refuses a
// field of the schema without a row.
graphql::Resolvers resolvers(const std::vector<FieldRow>& rows, Audit& audit);

// Who must ask for a field of a root type. Fields that the table does not have, as __schema,
// need a user; __typename does not.
Permission permission_of(const std::vector<FieldRow>& rows, RootType root, std::string_view field);

// The text of schema.graphql.
std::string_view schema_text();

}  // namespace gitops::app_proxy
