// Noise: what an API server and controllers write into every object, which nobody put into Git.
import { yamlLines, type Tree } from './tree';

const METADATA = ['managedFields', 'uid', 'resourceVersion', 'generation', 'creationTimestamp', 'selfLink'];
const ANNOTATIONS = ['kubectl.kubernetes.io/last-applied-configuration', 'deployment.kubernetes.io/revision', 'argocd.argoproj.io/tracking-id'];

// Values that the API server puts where a manifest has none, by the name of the field.
const DEFAULTS: Record<string, readonly string[]> = {
  revisionHistoryLimit: ['10'], progressDeadlineSeconds: ['600'], terminationGracePeriodSeconds: ['30'], minReadySeconds: ['0'],
  restartPolicy: ['"Always"'], dnsPolicy: ['"ClusterFirst"'], schedulerName: ['"default-scheduler"'], imagePullPolicy: ['"IfNotPresent"', '"Always"'],
  terminationMessagePath: ['"/dev/termination-log"'], terminationMessagePolicy: ['"File"'], securityContext: ['{}'], resources: ['{}'],
  protocol: ['"TCP"'], sessionAffinity: ['"None"'], type: ['"ClusterIP"', '"RollingUpdate"'], internalTrafficPolicy: ['"Cluster"'], ipFamilyPolicy: ['"SingleStack"'],
  maxSurge: ['"25%"'], maxUnavailable: ['"25%"'], podManagementPolicy: ['"OrderedReady"'], successThreshold: ['1'], failureThreshold: ['3'], periodSeconds: ['10'], timeoutSeconds: ['1'],
  scheme: ['"HTTP"'], defaultMode: ['420'], volumeMode: ['"Filesystem"'], apiVersion: [], concurrencyPolicy: ['"Allow"'], suspend: ['false'], completions: ['1'], parallelism: ['1'],
};
// Fields that the API server fills with a value of its own.
const FILLED = ['clusterIP', 'clusterIPs', 'ipFamilies', 'nodeName', 'finalizers'];

const size = (value: Tree): number => yamlLines(value).length;

function isDefault(key: string, value: Tree): boolean {
  if (FILLED.includes(key)) return true;
  if (value instanceof Map && value.size > 0 && (key === 'strategy' || key === 'rollingUpdate' || key === 'updateStrategy')) return [...value].every(([name, part]) => isDefault(name, part));
  const text = typeof value === 'string' ? value : value instanceof Map && value.size === 0 ? '{}' : '';
  return text !== '' && (DEFAULTS[key]?.includes(text) ?? false);
}

/** Removes defaults that the other side leaves open. Returns how many lines of YAML that were. */
function dropDefaults(value: Tree, other: Tree | undefined): number {
  let hidden = 0;
  if (Array.isArray(value)) {
    const others = Array.isArray(other) ? other : [];
    value.forEach((part, index) => { hidden += dropDefaults(part, others[index]); });
    return hidden;
  }
  if (!(value instanceof Map) || !(other instanceof Map)) return 0;
  for (const [key, part] of [...value]) {
    const given = other.get(key);
    if (given !== undefined) hidden += dropDefaults(part, given);
    else if (isDefault(key, part)) {
      hidden += size(new Map([[key, part]]));
      value.delete(key);
    }
  }
  return hidden;
}

function dropFields(root: Tree): number {
  if (!(root instanceof Map)) return 0;
  let hidden = 0;
  const drop = (map: Tree | undefined, key: string) => {
    if (!(map instanceof Map) || !map.has(key)) return;
    hidden += size(new Map([[key, map.get(key)!]]));
    map.delete(key);
  };
  drop(root, 'status');
  const metadata = root.get('metadata');
  for (const key of METADATA) drop(metadata, key);
  const annotations = metadata instanceof Map ? metadata.get('annotations') : undefined;
  for (const key of ANNOTATIONS) drop(annotations, key);
  if (annotations instanceof Map && annotations.size === 0 && metadata instanceof Map) {
    metadata.delete('annotations');
    ++hidden;
  }
  return hidden;
}

/** Removes the noise of both sides in place. Returns how many lines of YAML that hides. */
export function dropNoise(left: Tree | null, right: Tree | null): number {
  let hidden = (left === null ? 0 : dropFields(left)) + (right === null ? 0 : dropFields(right));
  if (left !== null && right !== null) hidden += dropDefaults(right, left) + dropDefaults(left, right);
  return hidden;
}
