// Reports resources of an Application as event-reporter does.
let sequence = Date.now() * 1000;

/** Reports a resource: what is in the cluster, what Git wants, and the file's text. Null: there is none. */
export async function reportResource(daemon, token, app, { live = null, desired = null, git = '', sync = 'Synced', health = '', event } = {}) {
  ++sequence;
  const object = live ?? desired;
  const { metadata } = app;
  await daemon.send('/2.0/api/events', {
    token,
    headers: { 'X-Event-Id': event ?? `${metadata.uid}/${object.kind}:${object.metadata.name}/${sequence}/x`, 'X-Event-Sequence': String(sequence) },
    body: { data: {
      object: Buffer.from(JSON.stringify(object)).toString('base64'),
      source: { desiredManifest: desired ? JSON.stringify(desired) : '', actualManifest: live ? JSON.stringify(live) : '', gitManifest: git, revision: app.status.sync.revision, syncStatus: sync,
        ...(health && { healthStatus: health }), historyId: 1, appName: metadata.name, appNamespace: metadata.namespace, appUID: metadata.uid, cluster: app.spec.destination.server },
    } },
  });
}

/** An object as a cluster has it. */
export function inCluster(object) {
  return { ...object, metadata: { ...object.metadata, uid: `uid-${object.kind}-${object.metadata.name}`, resourceVersion: '42', creationTimestamp: '2026-11-01T08:00:00Z', managedFields: [{ manager: 'argocd-controller', operation: 'Apply' }] } };
}
