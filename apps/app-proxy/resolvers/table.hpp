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
class ManagedClusters;
class RolloutActions;
class WorkflowActions;

// What the resolvers work with. It outlives the rows; so do the parts.
struct ResolverDependencies {
  const VersionInfo& version;
  RuntimeFiles files = {};
  FeaturePart<Feature::git_integrations, GitIntegrations> git_integrations = {};
  // Without these, there is no access to the cluster either.
  FeaturePart<Feature::git_integrations, k8s::Client> cluster = {};
  FeaturePart<Feature::git_integrations, SealingKeys> sealing_keys = {};
  FeaturePart<Feature::git_integrations, RuntimeIdentity> identity = {};
  CommitterPart committer = {};
  FeaturePart<Feature::commits, TreeReader> reader = {};
  FeaturePart<Feature::clusters, ManagedClusters> clusters = {};
  ApplicationsPart applications = {};
  FeaturePart<Feature::workflows, WorkflowActions> workflows = {};
  FeaturePart<Feature::rollouts, RolloutActions> rollouts = {};
  FeaturePart<Feature::logs, LogStreams> logs = {};
};

// The one list of all fields of Query, Mutation and Subscription: who may ask for each, its function, and the features
// that it needs. A new field is a line of schema.graphql and a row here.
std::vector<FieldRow> table(const ResolverDependencies& dependencies);

// These rows behind the checks of their permissions and of their features. Each call of one that changes state is written to
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
