// All GraphQL documents that the console sends to app-proxies. A test checks each against app-proxy's schema.graphql.

export const VERSION = `query Version { versionInfo { version } }`;

export const SYNC = `mutation Sync($name: String!, $namespace: String, $options: SyncOptions) {
  sync(applicationName: $name, appNamespace: $namespace, options: $options) { metadata { name } }
}`;

export const REFRESH = `mutation Refresh($name: String!, $namespace: String, $options: RefreshOptions) {
  refresh(applicationName: $name, appNamespace: $namespace, options: $options) { metadata { name } }
}`;

export const ROLLBACK = `mutation Rollback($name: String!, $namespace: String!, $historyId: Int!, $prune: Boolean) {
  appRollback(appName: $name, appNamespace: $namespace, historyId: $historyId, prune: $prune)
}`;

export const TERMINATE = `mutation Terminate($name: String!, $namespace: String) {
  terminateApplicationOperation(applicationName: $name, appNamespace: $namespace) { terminated }
}`;

export const DELETE_APPLICATION = `mutation DeleteApplication($name: String!, $namespace: String, $cascade: Boolean) {
  deleteArgoApplication(applicationName: $name, appNamespace: $namespace, cascade: $cascade)
}`;

export const LIVE_STATE = `query LiveState($name: String!, $namespace: String) {
  applicationProxyQuery(name: $name, appNamespace: $namespace) {
    metadata { name }
    spec { syncPolicy { automated { prune selfHeal } } }
    status {
      sync { status revision revisions }
      resources { group version kind namespace name status health { status } requiresPruning hook }
      operationState { phase message startedAt finishedAt operation { initiatedBy } }
    }
  }
}`;

const OBJECT = `$application: String!, $appNamespace: String, $group: String, $version: String, $kind: String!, $namespace: String, $resourceName: String!`;
const OBJECT_OF = `application: $application, appNamespace: $appNamespace, group: $group, version: $version, kind: $kind, namespace: $namespace, resourceName: $resourceName`;

export const RESOURCE_ACTIONS = `query ResourceActions(${OBJECT}) { resourceActions(${OBJECT_OF}) { name disabled } }`;

export const RUN_ACTION = `mutation RunAction(${OBJECT}, $action: String!) { runResourceAction(${OBJECT_OF}, action: $action) }`;

export const DELETE_RESOURCE = `mutation DeleteResource(${OBJECT}, $force: Boolean, $orphan: Boolean) { deleteResource(${OBJECT_OF}, force: $force, orphan: $orphan) }`;

export const ROLLOUT_ACTION = `mutation RolloutAction($application: String, $appNamespace: String, $namespace: String!, $name: String!, $action: RolloutActions!) {
  rolloutAction(application: $application, appNamespace: $appNamespace, namespace: $namespace, rolloutName: $name, action: $action) { changed message }
}`;
