import type { ApplicationNode } from '../../data/load';
import type { Node } from '../../graph/layout';
import { word } from '../../store/states';
import type { ReportedError } from '../runtimes/types';

export interface Resource {
  group: string | null;
  version: string | null;
  kind: string;
  namespace: string | null;
  name: string;
  syncStatus: string | null;
  healthStatus: string | null;
  healthMessage: string | null;
  hook: boolean | null;
  requiresPruning: boolean | null;
}

interface Ref {
  runtime: string;
  namespace: string | null;
  name: string;
}

export interface ApplicationDetail extends ApplicationNode {
  healthMessage: string | null;
  size: number | null;
  path: string | null;
  isHelmApp: boolean | null;
  isMultiSourced: boolean | null;
  resources: Resource[] | null;
  errors: ReportedError[] | null;
  specSource: { repoURL: string; path: string | null; targetRevision: string | null; chart: string | null } | null;
  specSources: { repoURL: string; path: string | null; targetRevision: string | null; chart: string | null; ref: string | null }[] | null;
  sync: { status: string | null; revision: string | null; revisions: string[] | null } | null;
  appsRelations: { parent: Ref | null; children: Ref[] | null } | null;
  history: { commitAuthor: string | null; commitMessage: string | null; commitDate: string | null; commitUrl: string | null; historyId: number | null; syncStartedAt: string | null; syncFinishedAt: string | null };
  operation: { phase: string | null; message: string | null; startedAt: string | null; finishedAt: string | null; revision: string | null; initiatedBy: string | null } | null;
}

export interface Release {
  historyId: number;
  syncOperationRevision: string;
  current: boolean | null;
  operationState: { phase: string | null; message: string | null; startedAt: string | null; finishedAt: string | null; initiatedBy: string | null } | null;
  application: {
    revision: string | null;
    status: { healthStatus: string | null; syncStatus: string; syncStartedAt: string | null; syncFinishedAt: string | null; commitAuthor: string | null; commitMessage: string | null; commitDate: string | null; commitUrl: string | null } | null;
    committers: { userName: string; commits: { sha: string | null; message: string | null; url: string | null; commitDate: string | null }[] | null }[] | null;
  };
  toState: {
    services: { name: string; images: { image: string | null }[] | null; replicas: number | null; availableReplicas: number | null }[];
    rollouts: { name: string; phase: string; currentStepIndex: number | null; steps: number | null; weightOfNew: number | null }[];
  } | null;
}

/** Returns an address only if it is one of the web: names and messages of others never become scripts. */
export function webAddress(text: string | null | undefined): string | undefined {
  return text && /^https?:\/\//i.test(text) ? text : undefined;
}

/** What is wrong with the source, when Argo CD can't compare the Application with it; else empty. */
export function sourceTrouble(app: ApplicationDetail): string {
  if (word(app.syncStatus) !== 'Unknown') return '';
  const error = app.errors?.find((one) => one.level === 'ERROR');
  return error ? `Argo CD can't compare it with its source: ${error.message}` : '';
}

/** Why an Application has no resources, as far as that is known. */
export function whyEmpty(app: ApplicationDetail): string {
  const source = sourceTrouble(app);
  if (source) return source;
  if (word(app.syncStatus) === 'Unknown') return 'Argo CD has not compared it with its source, and does not say why.';
  const sources = app.specSources ?? (app.specSource ? [app.specSource] : []);
  if (sources.length === 0) return 'It has no source.';
  const places = sources.map((one) => (one.chart ? `the chart ${one.chart}` : `the path ${one.path || '.'}`)).join(' and ');
  return `Argo CD finds nothing to deploy: ${places} at ${sources.map((one) => one.targetRevision || 'HEAD').join(' and ')} renders to no manifests.`;
}

/** Images that the current deployment reports, by workload. Null: none is recorded. */
export function imagesOf(releases: readonly Release[]): { workload: string; image: string }[] | null {
  const current = releases.find((one) => one.current) ?? releases[0];
  if (!current?.toState) return null;
  return current.toState.services.flatMap((one) => (one.images ?? []).filter(({ image }) => image).map(({ image }) => ({ workload: one.name, image: image! })));
}

/** What the stream said of a resource. */
export interface ResourcePatch {
  health: string | null;
  sync: string | null;
  seenAt: number;
}
export const patchKey = (kind: string, namespace: string | null, name: string): string => `${kind}\n${namespace ?? ''}\n${name}`;

/** Puts what the stream said since the reading into the resources. A kind that is there twice, in two groups, is left alone. */
export function withPatches(app: ApplicationDetail, patches: ReadonlyMap<string, ResourcePatch>): ApplicationDetail {
  if (patches.size === 0 || !app.resources) return app;
  const readAt = Date.parse(app.seenAt ?? '') || 0;
  const counts = new Map<string, number>();
  for (const one of app.resources) counts.set(patchKey(one.kind, one.namespace, one.name), (counts.get(patchKey(one.kind, one.namespace, one.name)) ?? 0) + 1);
  return { ...app, resources: app.resources.map((one) => {
    const key = patchKey(one.kind, one.namespace, one.name);
    const patch = patches.get(key);
    if (!patch || patch.seenAt < readAt || counts.get(key) !== 1) return one;
    return { ...one, healthStatus: patch.health ?? one.healthStatus, syncStatus: patch.sync ?? one.syncStatus, healthMessage: patch.health && patch.health !== one.healthStatus ? null : one.healthMessage };
  }) };
}

interface Said {
  tone: 'ok' | 'warn' | 'bad' | 'run' | 'mute';
  text: string;
}

/** One sentence of what is wrong, the most important first; what is not known is said, too. Pure. */
export function verdict(app: ApplicationDetail, isSilent: boolean): Said {
  const said = lastVerdict(app);
  // What was so then is not known to be so now.
  if (isSilent) return { tone: 'warn', text: `When its runtime was heard of last: ${said.text}` };
  return app.presence === 'STALE' ? { tone: 'warn', text: `When it was reported last: ${said.text}` } : said;
}

function lastVerdict(app: ApplicationDetail): Said {
  const health = word(app.healthStatus);
  const phase = app.operation?.phase ? word(app.operation.phase) : '';
  const broken = (app.resources ?? []).filter((one) => one.healthStatus && ['Degraded', 'Missing'].includes(word(one.healthStatus)));
  const named = broken.slice(0, 2).map((one) => `${one.kind} ${one.name}${one.healthMessage ? `: ${one.healthMessage}` : ` is ${word(one.healthStatus)}`}`).join('; ');
  const more = broken.length > 2 ? `, and ${broken.length - 2} more` : '';
  const source = sourceTrouble(app);
  if (phase === 'Failed' || phase === 'Error') return { tone: 'bad', text: `The last sync failed${app.operation?.message ? `: ${app.operation.message}` : '.'}` };
  if (source) return { tone: 'bad', text: source };
  if (health === 'Degraded' || health === 'Missing') return { tone: 'bad', text: named ? `${named}${more}.` : app.healthMessage || `It is ${health}. Why is not reported.` };
  if (phase === 'Running' || phase === 'Terminating') return { tone: 'run', text: 'A sync is running.' };
  if (health === 'Progressing') return { tone: 'run', text: app.healthMessage || 'Its resources are progressing.' };
  if (app.syncStatus === 'OUT_OF_SYNC') {
    const drifted = (app.resources ?? []).filter((one) => one.syncStatus && word(one.syncStatus) === 'OutOfSync').length;
    return { tone: 'warn', text: drifted > 0 ? `${drifted} of ${app.resources!.length} resources differ from Git.` : 'The cluster differs from Git.' };
  }
  if (health === 'Unknown') return { tone: 'mute', text: 'Its health is not known.' };
  if (health === 'Suspended') return { tone: 'mute', text: app.healthMessage || 'It is Suspended: something of it waits to be resumed.' };
  if (health !== 'Healthy') return { tone: 'mute', text: app.healthMessage || `It is ${health}.` };
  if (word(app.syncStatus) !== 'Synced') return { tone: 'mute', text: 'It is healthy. Whether it is as Git wants it is not known.' };
  return { tone: 'ok', text: 'It is healthy and as Git wants it.' };
}

export function resourceId(one: Resource): string {
  return [one.group ?? '', one.kind, one.namespace ?? '', one.name].join(':');
}

/** The tree: the Application and the resources that Argo CD reports for it. */
export function treeOf(app: ApplicationDetail): Node {
  const resources = app.resources ?? [];
  return {
    id: 'application', kind: 'Application', name: app.metadata.name, health: word(app.healthStatus), sync: word(app.syncStatus),
    children: resources.map((one) => ({
      id: resourceId(one), kind: one.kind, name: one.name, children: [],
      health: one.healthStatus ? word(one.healthStatus) : '',
      sync: one.syncStatus ? word(one.syncStatus) : '',
    })),
  };
}
