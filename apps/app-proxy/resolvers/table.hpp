#pragma once

#include <string_view>
#include <vector>

#include "app-proxy/resolvers/field_row.hpp"
#include "app-proxy/resolvers/git_sources.hpp"
#include "app-proxy/resolvers/tool_integrations.hpp"
#include "app-proxy/resolvers/version.hpp"
#include "app-proxy/users/audit.hpp"

namespace gitops::app_proxy {

class LogStreams;
class RolloutActions;
class WorkflowActions;

// Dependencies of the resolvers. This object and its parts outlive the rows.
struct ResolverDependencies {
  const VersionInfo& version;
  RuntimeFiles files = {};
  FeaturePart<Feature::git_integrations, GitIntegrations> git_integrations = {};
  // Null, as git_integrations, when there is no access to the cluster.
  FeaturePart<Feature::git_integrations, k8s::Client> cluster = {};
  FeaturePart<Feature::git_integrations, SealingKeys> sealing_keys = {};
  FeaturePart<Feature::git_integrations, RuntimeIdentity> identity = {};
  CommitterPart committer = {};
  FeaturePart<Feature::commits, TreeReader> reader = {};
  ClustersPart clusters = {};
  ApplicationsPart applications = {};
  FeaturePart<Feature::workflows, WorkflowActions> workflows = {};
  FeaturePart<Feature::rollouts, RolloutActions> rollouts = {};
  FeaturePart<Feature::logs, LogStreams> logs = {};
};

// The list of all fields of Query, Mutation and Subscription: permission, function and required
// features of each. A new field is a line of schema.graphql and a row here.
std::vector<FieldRow> table(const ResolverDependencies& dependencies);

// Wraps the rows with the checks of their permissions and features. Each call of a row that changes
// state is written to `audit`, which outlives the result.
graphql::Resolvers guarded(const std::vector<FieldRow>& rows, Audit& audit);
// Returns the guarded rows together with the rows of all object types. Engine::make() refuses a
// field of schema.graphql without a row.
graphql::Resolvers resolvers(const std::vector<FieldRow>& rows, Audit& audit);

// Permission of a field of a root type. Fields that are not in the table, as __schema, need a user;
// __typename does not.
Permission permission_of(const std::vector<FieldRow>& rows, RootType root, std::string_view field);

// Text of schema.graphql.
std::string_view schema_text();

}  // namespace gitops::app_proxy
