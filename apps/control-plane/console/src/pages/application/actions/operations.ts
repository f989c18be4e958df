// What actions on an Application will do, in words. Pure.
import { word } from '../../../store/states';

/** An object as app-proxy's applicationProxyQuery has it. */
export interface LiveResource {
  group: string | null;
  version: string | null;
  kind: string;
  namespace: string | null;
  name: string;
  status: string | null;
  health: { status: string | null } | null;
  requiresPruning: boolean | null;
  hook: boolean | null;
}

export interface Operation {
  phase: string;
  message: string | null;
  startedAt: string;
  finishedAt: string | null;
  operation: { initiatedBy: { username?: string; automated?: boolean } | null } | null;
}

export interface LiveState {
  applicationProxyQuery: {
    spec: { syncPolicy: { automated: { prune: boolean | null; selfHeal: boolean | null } | null } | null };
    status: {
      sync: { status: string; revision: string | null; revisions: string[] | null } | null;
      resources: LiveResource[] | null;
      operationState: Operation | null;
    };
  } | null;
}

/** An object of a sync, as app-proxy's SyncResource has it. */
export interface Chosen {
  group: string;
  kind: string;
  namespace: string;
  name: string;
}
export const idOf = ({ group, kind, namespace, name }: Pick<LiveResource, 'group' | 'kind' | 'namespace' | 'name'>): string => [group ?? '', kind, namespace ?? '', name].join('/');

/** The objects that a sync can be limited to: those that differ first. Hooks are never chosen, Argo CD runs them by itself. */
export function choices(resources: readonly LiveResource[]): LiveResource[] {
  const rank = (one: LiveResource) => (word(one.status) === 'Synced' && !one.requiresPruning ? 1 : 0);
  return resources.filter((one) => !one.hook).sort((a, b) => rank(a) - rank(b) || (idOf(a) < idOf(b) ? -1 : 1));
}

export function chosenOf(resources: readonly LiveResource[], ids: ReadonlySet<string>): Chosen[] {
  return resources.filter((one) => ids.has(idOf(one))).map(({ group, kind, namespace, name }) => ({ group: group ?? '', kind, namespace: namespace ?? '', name }));
}

export interface Preview {
  creates: string[];
  changes: string[];
  deletes: string[];
  stays: string[]; // not in Git any more, and not pruned
}

const named = ({ kind, name }: LiveResource): string => `${kind} ${name}`;

/** What a sync to the revision that Argo CD compares with will do. Null: it does not list the objects. */
export function previewOf(resources: readonly LiveResource[] | null, prune: boolean): Preview | null {
  if (!resources) return null;
  const preview: Preview = { creates: [], changes: [], deletes: [], stays: [] };
  for (const one of resources) {
    if (one.requiresPruning) preview[prune ? 'deletes' : 'stays'].push(named(one));
    else if (word(one.status) !== 'OutOfSync') continue;
    else if (word(one.health?.status) === 'Missing') preview.creates.push(named(one));
    else preview.changes.push(named(one));
  }
  return preview;
}

const NAMED = 5;
function listed(names: readonly string[]): string {
  const shown = names.slice(0, NAMED).join(', ');
  return names.length > NAMED ? `${shown} and ${names.length - NAMED} more` : shown;
}

/** "Changes 3, creates 1, deletes 2: ConfigMap a, Job b." */
export function previewText(preview: Preview | null): string {
  if (!preview) return 'Argo CD does not list the objects of this application, so what will change is not known.';
  const { changes, creates, deletes, stays } = preview;
  const parts = [changes.length > 0 ? `changes ${changes.length}` : '', creates.length > 0 ? `creates ${creates.length}` : '', deletes.length > 0 ? `deletes ${deletes.length}: ${listed(deletes)}` : ''].filter(Boolean).join(', ');
  const first = parts === '' ? 'Changes nothing: all objects are as Git wants them.' : `${parts.charAt(0).toUpperCase()}${parts.slice(1)}.`;
  return stays.length > 0 ? `${first} Leaves ${stays.length} that ${stays.length === 1 ? 'is' : 'are'} not in Git any more: ${listed(stays)}.` : first;
}

/** The deployments that a rollback can go to. Argo CD counts them from 0. */
export function targetsOf<T extends { current: boolean | null; historyId: number }>(releases: readonly T[]): T[] {
  return releases.filter((one) => !one.current);
}

/** The deployment that a rollback has chosen at first: the wanted one, or else the newest. Undefined: there is none. */
export function firstTarget(targets: readonly { historyId: number }[], wanted: number | null): number | undefined {
  return targets.some((one) => one.historyId === wanted) ? wanted! : targets[0]?.historyId;
}

/** Who began an operation. */
export function starter(operation: Operation): string {
  const by = operation.operation?.initiatedBy;
  return by?.automated ? 'automated sync' : by?.username || 'somebody who is not named';
}

/** The operation that is in progress, if there is one. */
export function running(state: LiveState | null): Operation | null {
  const operation = state?.applicationProxyQuery?.status.operationState ?? null;
  return operation && ['Running', 'Terminating'].includes(operation.phase) ? operation : null;
}

export function isAutomated(state: LiveState | null): boolean {
  return Boolean(state?.applicationProxyQuery?.spec.syncPolicy?.automated);
}

/** The begin of an operation that is not the one before: what its address has. Empty: none has begun. */
export function begunSince(before: LiveState | null, after: LiveState): string {
  const now = after.applicationProxyQuery?.status.operationState?.startedAt ?? '';
  return now === before?.applicationProxyQuery?.status.operationState?.startedAt ? '' : now;
}

/** What a later look says of an action whose answer was lost: another operation has begun since, or nothing yet. */
export function newOperation(before: LiveState | null, after: LiveState): string | null {
  const old = before?.applicationProxyQuery?.status.operationState;
  const now = after.applicationProxyQuery?.status.operationState;
  if (!now || now.startedAt === old?.startedAt) return null;
  return `An operation by ${starter(now)} has begun since, at ${now.startedAt}. It is ${now.phase}.`;
}

/** The same of the end of an operation. */
export function endedOperation(before: LiveState | null, after: LiveState): string | null {
  const old = running(before);
  if (!old) return null;
  const now = after.applicationProxyQuery?.status.operationState;
  const isOver = !now || now.startedAt !== old.startedAt || !['Running'].includes(now.phase);
  return isOver ? `The operation is ${now && now.startedAt === old.startedAt ? now.phase : 'over'}.` : null;
}

export interface RolloutVerb {
  action: string; // of app-proxy
  text: string;
  right: string;
  says: string; // what it will do
}
/** Actions on a Rollout; the rights are those of docs/reference/app-proxy/actions.md. */
export const ROLLOUT_VERBS: readonly RolloutVerb[] = [
  { action: 'PROMOTE', text: 'Promote', right: 'ROLLOUT_RESUME', says: 'Goes on from the pause at which it is.' },
  { action: 'PROMOTE_FULL', text: 'Promote fully', right: 'ROLLOUT_PROMOTE_FULL', says: 'Skips all steps, pauses and analysis that are left: the new version takes all traffic.' },
  { action: 'PAUSE', text: 'Pause', right: 'ROLLOUT_PAUSE', says: 'Stays at its step until it is promoted.' },
  { action: 'ABORT', text: 'Abort', right: 'ROLLOUT_ABORT', says: 'Gives all traffic back to the stable version. Git still wants the new one.' },
  { action: 'RETRY', text: 'Retry', right: 'ROLLOUT_RETRY', says: 'Begins an aborted rollout again from its first step.' },
  { action: 'RESTART', text: 'Restart', right: 'RESTART', says: 'Replaces its pods one after the other.' },
];
export const isRollout = ({ group, kind }: { group: string | null; kind: string }): boolean => group === 'argoproj.io' && kind === 'Rollout';

/** The right that an action of Argo CD on an object needs; empty: only administrators may. */
export function rightOf(object: { group: string | null; kind: string }, action: string): string {
  if (action === 'restart') return 'RESTART';
  if (!isRollout(object)) return '';
  return { 'abort': 'ROLLOUT_ABORT', 'pause': 'ROLLOUT_PAUSE', 'resume': 'ROLLOUT_RESUME', 'retry': 'ROLLOUT_RETRY', 'promote-full': 'ROLLOUT_PROMOTE_FULL', 'skip-current-step': 'ROLLOUT_SKIP_CURRENT_STEP' }[action] ?? '';
}
