// All GraphQL documents of the console. A test checks each against schema.graphql.

export const ME = `query Me { me { id name email isAdmin activeAccount { id name admins } } }`;

const ROW = `metadata { uid runtime namespace name cluster lastUpdated labels { key value } }
  healthStatus syncStatus syncPolicy revision updatedAt seenAt presence repoURL project
  destination { name server namespace }
  status { commitAuthor commitMessage }
  operationState { phase }`;

export const APPLICATIONS = `query Applications($after: String, $first: Int) {
  applications(pagination: { after: $after, first: $first }) {
    edges { node { ${ROW} } }
    pageInfo { endCursor hasNextPage }
  }
}`;

const DETAIL = `${ROW}
    resources { group version kind namespace name syncStatus healthStatus healthMessage hook requiresPruning }
    healthMessage size path isHelmApp isMultiSourced
    errors { level title message suggestion lastSeen }
    specSource { repoURL path targetRevision chart }
    specSources { repoURL path targetRevision chart ref }
    sync { status revision revisions }
    appsRelations { parent { runtime namespace name } children { runtime namespace name } }
    history: status { commitAuthor commitMessage commitDate commitUrl historyId syncStartedAt syncFinishedAt }
    operation: operationState { phase message startedAt finishedAt revision initiatedBy }`;

export const APPLICATION = `query Application($runtime: String, $namespace: String, $name: String) {
  application(runtime: $runtime, namespace: $namespace, name: $name) { ${DETAIL} }
}`;

// The query for one finds none that is gone.
export const GONE_APPLICATION = `query GoneApplication($filters: ApplicationsFilterArgs) {
  applications(filters: $filters, pagination: { first: 10 }) { edges { node { ${DETAIL} } } }
}`;

export const RELEASES = `query Releases($filters: GitopsReleaseFilterArgs, $after: String, $first: Int) {
  gitopsReleases(filters: $filters, pagination: { after: $after, first: $first }) {
    edges { node {
      historyId syncOperationRevision current
      operationState { phase message startedAt finishedAt initiatedBy }
      application { revision
        status { healthStatus syncStatus syncStartedAt syncFinishedAt commitAuthor commitMessage commitDate commitUrl }
        committers { userName commits { sha message url commitDate } } }
      toState { services { name images { image } replicas availableReplicas } rollouts { name phase currentStepIndex steps weightOfNew } }
    } }
    pageInfo { endCursor hasNextPage }
  }
}`;

const RUNTIME = `metadata { name namespace cluster lastUpdated created }
  syncStatus healthStatus healthMessage available installationStatus accessMode ingressHost
  runtimeVersion chartVersion lastUpdated managedClustersNum isConfigurationRuntime gitProvider repo
  errors { level title message suggestion lastSeen }`;

export const RUNTIMES = `query Runtimes { runtimes { edges { node { ${RUNTIME} } } } }`;

export const RUNTIME_DETAIL = `query Runtime($name: String!) {
  runtime(name: $name) {
    ${RUNTIME}
    status {
      syncMode argoCdState
      appProxyStarted { status description } gitSourceConfigured { status description }
      defaultGitIntegration { status description } encryptionKey { status description }
      encryptionIv { status description } eventReporterArgoCDToken { status description }
      isc { status description } runtimeGitToken { status description }
    }
  }
  clusters(runtime: $name) { edges { node {
    metadata { name } server updatedAt inactive
    info { connectionState { status message attemptedAt } serverVersion applicationsCount }
  } } }
  components(runtime: $name) { edges { node { metadata { name namespace } version syncStatus healthStatus } } }
  gitSources(runtime: $name) { edges { node {
    metadata { name namespace } syncStatus healthStatus isRestricted
    self { repoURL path revision errors { level title message suggestion lastSeen } }
  } } }
}`;

const RULE = `id entityType teams tags actions attributes { name key value }`;
const DECISION = `user { id name } action allowed reason rule { ${RULE} } team { id name }`;

export const RULES = `query Rules { abacRules { ${RULE} } }`;

export const CREATE_RULE = `mutation CreateRule($rule: CreateAbacRuleInput!) { createAbacRule(createAbacRuleInput: $rule) { ${RULE} } }`;

export const REMOVE_RULE = `mutation RemoveRule($id: ID!) { removeAbacRule(id: $id) { id } }`;

export const ACCESS = `query Access($entity: AccessEntityInput!, $userId: ID) { access(entity: $entity, userId: $userId) { ${DECISION} } }`;

export const USERS_WITH_ACCESS = `query UsersWithAccess($entity: AccessEntityInput!, $action: AbacActionNames!) {
  usersWithAccess(entity: $entity, action: $action) { ${DECISION} }
}`;

export const JOURNAL = `query Journal($runtime: String!, $namespace: String!, $name: String!, $after: String, $first: Int) {
  applicationJournal(runtime: $runtime, namespace: $namespace, name: $name, pagination: { after: $after, first: $first }) {
    edges { node {
      kind eventId sequence reportedAt receivedAt step object { group kind namespace name }
      revision syncStatus healthStatus healthMessage phase commitAuthor commitMessage reason bytes
    } }
    pageInfo { endCursor hasNextPage }
  }
}`;

export const REPORT_AGAIN = `mutation ReportAgain($runtime: String!, $namespace: String!, $name: String!) {
  reportApplicationAgain(runtime: $runtime, namespace: $namespace, name: $name) { state requestedAt expiresAt message }
}`;

export const MANIFESTS = `query Manifests($runtime: String!, $namespace: String!, $name: String!, $resource: ApplicationResourceInput!) {
  applicationResource(runtime: $runtime, namespace: $namespace, name: $name, resource: $resource) {
    group kind namespace name syncStatus healthStatus healthMessage revision seenAt presence
    desiredManifest liveManifest gitManifest masked
  }
}`;
