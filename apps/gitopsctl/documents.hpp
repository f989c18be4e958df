#pragma once

#include <array>
#include <string_view>

// All GraphQL documents of gitopsctl. A test checks each against the schema of its server.
namespace gitops::ctl {

struct Document {
  enum class Peer { control_plane, app_proxy } peer = Peer::control_plane;
  std::string_view text;
};

inline constexpr Document kMe{
    .text =
        "query Me { me { id name email isAdmin runtimeName activeAccount { id name admins } } }"};

inline constexpr Document kRuntimes{.text = R"(query Runtimes($after: String, $first: Int) {
  runtimes(pagination: { after: $after, first: $first }) {
    edges { node {
      metadata { name namespace cluster created }
      syncStatus healthStatus healthMessage available installationStatus accessMode ingressHost
      runtimeVersion chartVersion lastUpdated managedClustersNum isConfigurationRuntime
      errors { level title message suggestion lastSeen }
    } }
    pageInfo { endCursor hasNextPage }
  }
})"};

inline constexpr Document kRuntime{.text = R"(query Runtime($name: String!) {
  runtime(name: $name) {
    metadata { name namespace cluster created }
    syncStatus healthStatus healthMessage available installationStatus accessMode ingressHost
    runtimeVersion chartVersion lastUpdated managedClustersNum isConfigurationRuntime
    errors { level title message suggestion lastSeen }
    status {
      syncMode argoCdState
      appProxyStarted { status description } gitSourceConfigured { status description }
      defaultGitIntegration { status description } encryptionKey { status description }
      eventReporterArgoCDToken { status description } isc { status description }
      runtimeGitToken { status description }
    }
  }
  components(runtime: $name) { edges { node { metadata { name } version syncStatus healthStatus } } }
})"};

inline constexpr Document kRuntimeAddress{
    .text =
        "query RuntimeAddress($name: String!) { runtime(name: $name) { internalIngressHost "
        "ingressHost available } }"};

inline constexpr Document kDeleteRuntime{
    .text = "mutation DeleteRuntime($name: String!) { deleteRuntime(name: $name) }"};

inline constexpr Document kApplications{
    .text = R"(query Applications($filters: ApplicationsFilterArgs, $after: String, $first: Int) {
  applications(filters: $filters, pagination: { after: $after, first: $first }) {
    edges { node {
      metadata { runtime namespace name cluster created labels { key value } }
      syncStatus healthStatus syncPolicy revision updatedAt seenAt presence repoURL project
      destination { name server namespace }
      operationState { phase }
    } }
    pageInfo { endCursor hasNextPage }
  }
})"};

inline constexpr Document kApplication{
    .text = R"(query Application($runtime: String, $namespace: String, $name: String) {
  application(runtime: $runtime, namespace: $namespace, name: $name) {
    metadata { runtime namespace name cluster created labels { key value } }
    syncStatus healthStatus healthMessage syncPolicy revision updatedAt seenAt presence project
    destination { name server namespace }
    specSource { repoURL path targetRevision chart }
    status { commitAuthor commitMessage commitDate historyId }
    operationState { phase message startedAt finishedAt revision initiatedBy }
    errors { level title message suggestion lastSeen }
    appsRelations { parent { runtime namespace name } children { runtime namespace name } }
    resources { group version kind namespace name syncStatus healthStatus healthMessage hook requiresPruning }
  }
})"};

inline constexpr Document kNewestDeliveries{
    .text =
        R"(query NewestDeliveries($runtime: String!, $namespace: String!, $name: String!) {
  applicationJournal(runtime: $runtime, namespace: $namespace, name: $name, pagination: { first: 20 }) {
    edges { node { sequence } }
  }
})"};

inline constexpr Document kReportAgain{
    .text =
        R"(mutation ReportAgain($runtime: String!, $namespace: String!, $name: String!) {
  reportApplicationAgain(runtime: $runtime, namespace: $namespace, name: $name) {
    state requestedAt expiresAt message
  }
})"};

inline constexpr Document kReleases{
    .text = R"(query Releases($filters: GitopsReleaseFilterArgs, $after: String, $first: Int) {
  gitopsReleases(filters: $filters, pagination: { after: $after, first: $first }) {
    edges { node {
      applicationMetadata { runtime namespace name }
      historyId syncOperationRevision current
      operationState { phase message startedAt finishedAt initiatedBy }
      application { revision
        status { healthStatus syncStatus syncStartedAt syncFinishedAt commitAuthor commitMessage commitDate } }
    } }
    pageInfo { endCursor hasNextPage }
  }
})"};

inline constexpr Document kGitSources{
    .text = R"(query GitSources($runtime: String, $after: String, $first: Int) {
  gitSources(runtime: $runtime, pagination: { after: $after, first: $first }) {
    edges { node {
      metadata { runtime namespace name } syncStatus healthStatus isRestricted
      self { repoURL path revision }
    } }
    pageInfo { endCursor hasNextPage }
  }
})"};

inline constexpr Document kClusters{
    .text = R"(query Clusters($runtime: String, $after: String, $first: Int) {
  clusters(runtime: $runtime, pagination: { after: $after, first: $first }) {
    edges { node {
      metadata { runtime name } server updatedAt inactive
      info { connectionState { status message attemptedAt } serverVersion applicationsCount }
    } }
    pageInfo { endCursor hasNextPage }
  }
})"};

inline constexpr Document kRules{.text = R"(query Rules {
  abacRules(accountId: "") { id entityType teams tags actions attributes { name key value } }
})"};

inline constexpr Document kAccess{.text = R"(query Access($entity: AccessEntityInput!, $user: ID) {
  access(entity: $entity, userId: $user) {
    user { id name } action allowed reason rule { id } team { name }
  }
})"};

inline constexpr Document kUsersWithAccess{
    .text = R"(query UsersWithAccess($entity: AccessEntityInput!, $action: AbacActionNames!) {
  usersWithAccess(entity: $entity, action: $action) {
    user { id name } action allowed reason rule { id } team { name }
  }
})"};

inline constexpr Document kSync{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation Sync($name: String!, $namespace: String, $options: SyncOptions) {
  sync(applicationName: $name, appNamespace: $namespace, options: $options) { metadata { name } }
})"};

inline constexpr Document kRollback{
    .peer = Document::Peer::app_proxy,
    .text =
        R"(mutation Rollback($name: String!, $namespace: String!, $id: Int!, $dryRun: Boolean, $prune: Boolean) {
  appRollback(appName: $name, appNamespace: $namespace, historyId: $id, dryRun: $dryRun, prune: $prune)
})"};

inline constexpr Document kTerminate{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation Terminate($name: String!, $namespace: String) {
  terminateApplicationOperation(applicationName: $name, appNamespace: $namespace) { terminated }
})"};

inline constexpr Document kResource{
    .peer = Document::Peer::app_proxy,
    .text =
        R"(query Resource($app: String!, $appNamespace: String, $group: String, $version: String, $kind: String!, $namespace: String, $name: String) {
  resource(application: $app, appNamespace: $appNamespace, group: $group, version: $version, kind: $kind, namespace: $namespace, resourceName: $name) {
    normalizedLiveState predictedLiveState
  }
})"};

inline constexpr Document kWorkflows{
    .text = R"(query Workflows($filters: WorkflowsFilterArgs, $after: String, $first: Int) {
  workflows(filters: $filters, pagination: { after: $after, first: $first }) {
    edges { node {
      metadata { runtime namespace name uid created }
      spec { workflowTemplateRef { name } }
      status { phase progress message startedAt finishedAt runningPodsCount }
    } }
    pageInfo { endCursor hasNextPage }
  }
})"};

inline constexpr Document kWorkflow{.text = R"(query Workflow($uid: String!) {
  workflow(uid: $uid) {
    metadata { runtime namespace name uid created }
    spec { entrypoint workflowTemplateRef { name } }
    status {
      phase progress message startedAt finishedAt runningPodsCount
      nodes { id type name displayName phase message startedAt finishedAt }
    }
  }
})"};

inline constexpr Document kCreateRule{.text = R"(mutation CreateRule($rule: CreateAbacRuleInput!) {
  createAbacRule(createAbacRuleInput: $rule) { id entityType teams tags actions attributes { name key value } }
})"};

inline constexpr Document kRemoveRule{
    .text = "mutation RemoveRule($id: ID!) { removeAbacRule(id: $id) { id } }"};

inline constexpr Document kRefresh{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation Refresh($name: String!, $namespace: String, $options: RefreshOptions) {
  refresh(applicationName: $name, appNamespace: $namespace, options: $options) { metadata { name } }
})"};

inline constexpr Document kLiveState{
    .peer = Document::Peer::app_proxy,
    .text =
        R"(query LiveState($app: String!, $appNamespace: String, $group: String, $version: String, $kind: String!, $namespace: String, $name: String) {
  resource(application: $app, appNamespace: $appNamespace, group: $group, version: $version, kind: $kind, namespace: $namespace, resourceName: $name) { liveState }
})"};

inline constexpr Document kRolloutAction{
    .peer = Document::Peer::app_proxy,
    .text =
        R"(mutation RolloutAction($app: String, $appNamespace: String, $namespace: String!, $name: String!, $action: RolloutActions!) {
  rolloutAction(application: $app, appNamespace: $appNamespace, namespace: $namespace, rolloutName: $name, action: $action) { changed message }
})"};

inline constexpr Document kRolloutRollback{
    .peer = Document::Peer::app_proxy,
    .text =
        R"(mutation RolloutRollback($app: String, $appNamespace: String, $namespace: String!, $name: String!, $revision: Int) {
  rolloutRollback(application: $app, appNamespace: $appNamespace, namespace: $namespace, rolloutName: $name, rolloutRevision: $revision) { newRevision }
})"};

inline constexpr Document kSetRolloutImage{
    .peer = Document::Peer::app_proxy,
    .text =
        R"(mutation SetRolloutImage($app: String, $appNamespace: String, $namespace: String!, $name: String!, $container: String!, $image: String!) {
  setRolloutImage(application: $app, appNamespace: $appNamespace, namespace: $namespace, rolloutName: $name, container: $container, image: $image) { changed message }
})"};

inline constexpr Document kTerminateWorkflow{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation TerminateWorkflow($namespace: String!, $name: String!) {
  terminateWorkflow(namespace: $namespace, workflowName: $name)
})"};

inline constexpr Document kStopWorkflow{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation StopWorkflow($namespace: String!, $name: String!, $message: String) {
  stopWorkflow(namespace: $namespace, workflowName: $name, message: $message)
})"};

inline constexpr Document kSuspendWorkflow{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation SuspendWorkflow($namespace: String!, $name: String!) {
  suspendWorkflow(namespace: $namespace, workflowName: $name)
})"};

inline constexpr Document kResumeWorkflow{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation ResumeWorkflow($namespace: String!, $name: String!) {
  resumeWorkflow(namespace: $namespace, workflowName: $name)
})"};

inline constexpr Document kRetryWorkflow{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation RetryWorkflow($namespace: String!, $name: String!, $restart: Boolean) {
  retryWorkflow(namespace: $namespace, workflowName: $name, restartSuccessful: $restart)
})"};

inline constexpr Document kResubmitWorkflow{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation ResubmitWorkflow($namespace: String!, $name: String!) {
  resubmitWorkflow(namespace: $namespace, workflowName: $name) { newWorkflowName }
})"};

inline constexpr Document kDeleteWorkflow{
    .peer = Document::Peer::app_proxy,
    .text = R"(mutation DeleteWorkflow($namespace: String!, $name: String!) {
  deleteWorkflow(namespace: $namespace, workflowName: $name)
})"};

inline constexpr Document kSubmitWorkflow{
    .peer = Document::Peer::app_proxy,
    .text =
        R"(mutation SubmitWorkflow($namespace: String!, $template: String!, $parameters: [WorkflowParameterInput!]) {
  createWorkflowFromWorkflowTemplate(namespace: $namespace, workflowTemplateName: $template, parameters: $parameters) { newWorkflowName }
})"};

inline constexpr Document kCreateGitSource{
    .peer = Document::Peer::app_proxy,
    .text =
        "mutation CreateGitSource($args: CreateGitSourceInput!) { createGitSource(args: $args) }"};

inline constexpr Document kDeleteGitSource{
    .peer = Document::Peer::app_proxy,
    .text =
        "mutation DeleteGitSource($name: String!) { deleteApplication(args: { appName: $name }) }"};

inline constexpr Document kRemoveCluster{
    .peer = Document::Peer::app_proxy,
    .text =
        R"(mutation RemoveCluster($server: String!, $runtime: String!) { removeCluster(server: $server, runtime: $runtime) })"};

inline constexpr std::array kDocuments = {kMe,
                                          kRuntimes,
                                          kRuntime,
                                          kRuntimeAddress,
                                          kDeleteRuntime,
                                          kApplications,
                                          kApplication,
                                          kNewestDeliveries,
                                          kReportAgain,
                                          kReleases,
                                          kGitSources,
                                          kClusters,
                                          kRules,
                                          kAccess,
                                          kUsersWithAccess,
                                          kSync,
                                          kRollback,
                                          kTerminate,
                                          kResource,
                                          kWorkflows,
                                          kWorkflow,
                                          kCreateRule,
                                          kRemoveRule,
                                          kRefresh,
                                          kLiveState,
                                          kRolloutAction,
                                          kRolloutRollback,
                                          kSetRolloutImage,
                                          kTerminateWorkflow,
                                          kStopWorkflow,
                                          kSuspendWorkflow,
                                          kResumeWorkflow,
                                          kRetryWorkflow,
                                          kResubmitWorkflow,
                                          kDeleteWorkflow,
                                          kSubmitWorkflow,
                                          kCreateGitSource,
                                          kDeleteGitSource,
                                          kRemoveCluster};

}  // namespace gitops::ctl
