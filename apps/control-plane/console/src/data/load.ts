// Fills the store of applications: whole readings through GraphQL, changes from the stream, and readings every 15 s where
// there is no stream.
import { effect } from '@preact/signals';

import { follow, live, onChanges, onReset, type Changes } from '../live/client';
import { streamedRow, time, uidOf, type ApplicationRow } from '../store/applications';
import { RuntimeContacts } from '../store/runtimes';
import { applications, loadState, offline, readings, rowsChanged } from '../store/state';
import { word } from '../store/states';
import { APPLICATIONS, RUNTIMES } from './documents';
import { announce } from '../shell/announce';
import { failureOf, query } from './request';

const PAGE = 1_000; // the most that the server allows
const POLL = 15_000;

export interface ApplicationNode {
  metadata: { uid: string | null; runtime: string; namespace: string | null; name: string; cluster: string | null; lastUpdated: string | null;
    labels: { key: string; value: string }[] | null };
  healthStatus: string | null;
  syncStatus: string;
  syncPolicy: string | null;
  revision: string | null;
  updatedAt: string | null;
  seenAt: string | null;
  presence: 'LIVE' | 'GONE' | 'STALE';
  repoURL: string | null;
  project: string | null;
  destination: { name: string | null; server: string | null; namespace: string | null } | null;
  status: { commitAuthor: string | null; commitMessage: string | null };
  operationState: { phase: string | null } | null;
}

/** One that is not reported any more, although its runtime reports, is not known to be as it was. */
export function rowOfNode(node: ApplicationNode): ApplicationRow {
  const { metadata, destination, status, operationState } = node;
  const isKnown = node.presence !== 'STALE';
  return {
    uid: uidOf(metadata.uid, metadata.runtime, metadata.namespace, metadata.name),
    runtime: metadata.runtime,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    health: word(isKnown ? node.healthStatus : null),
    sync: word(isKnown ? node.syncStatus : null),
    phase: operationState?.phase ? word(operationState.phase) : '',
    revision: node.revision ?? '',
    message: status.commitMessage ?? '',
    author: status.commitAuthor ?? '',
    cluster: destination?.server || destination?.name || metadata.cluster || '', // in the order of the stream
    project: node.project ?? '',
    repo: node.repoURL ?? '',
    labels: (metadata.labels ?? []).map(({ key, value }) => `${key}=${value}`),
    autoSync: node.syncPolicy === 'Automated',
    changedAt: time(node.updatedAt),
    seenAt: time(node.seenAt ?? metadata.lastUpdated),
  };
}

interface ApplicationsAnswer {
  applications: { edges: { node: ApplicationNode }[]; pageInfo: { endCursor: string | null; hasNextPage: boolean } };
}

async function readAll(signal: AbortSignal): Promise<ApplicationRow[]> {
  const rows: ApplicationRow[] = [];
  const ask = (after: string) => query<ApplicationsAnswer>('read the applications', APPLICATIONS, { after, first: PAGE }, signal);
  for (let next: ReturnType<typeof ask> | null = ask(''); next;) {
    const { applications: { edges, pageInfo } }: ApplicationsAnswer = await next;
    // The next slice is on its way while the rows of this one are made.
    next = pageInfo.hasNextPage && pageInfo.endCursor ? ask(pageInfo.endCursor) : null;
    for (const { node } of edges) rows.push(rowOfNode(node));
  }
  return rows;
}

let running: AbortController | null = null;

/** Reads all applications. With `restart` a reading that is under way is given up: it may have missed something. */
export async function readApplications({ restart = false } = {}): Promise<void> {
  if (running && !restart) return;
  running?.abort();
  const control = new AbortController();
  running = control;
  late.patches.clear();
  late.gone.clear();
  loadState.value = { ...loadState.peek(), state: 'loading' };
  try {
    const rows = await readAll(control.signal);
    if (control.signal.aborted) return;
    applications.replace(rows);
    apply(late);
    loadState.value = { state: 'done', at: Date.now(), failure: null };
    readings.value++;
    rowsChanged();
  } catch (error) {
    if (control.signal.aborted) return;
    loadState.value = { ...loadState.peek(), state: 'failed', failure: failureOf('read the applications', error) };
  } finally {
    if (running === control) running = null;
  }
}

const contacts = new RuntimeContacts();
const LOOK = 10_000;
const SLEPT = 90_000; // milliseconds between two looks; browsers let pages that are not seen look once a minute
let lookedAt = 0;
function findSilent(): void {
  const now = Date.now();
  if (lookedAt > 0 && now - lookedAt > SLEPT) contacts.countAnew(now); // the device slept
  lookedAt = now;
  const found = contacts.silent(now, live.peek().state === 'live');
  const known = offline.peek();
  if (found.size !== known.size || [...found].some(([name, since]) => known.get(name) !== since)) offline.value = found;
}

async function readOffline(): Promise<void> {
  try {
    const { runtimes } = await query<{ runtimes: { edges: { node: { metadata: { name: string }; available: boolean; lastUpdated: string | null } }[] } }>('read the runtimes', RUNTIMES);
    contacts.read(runtimes.edges.map(({ node }) => ({ name: node.metadata.name, seenAt: time(node.lastUpdated), available: node.available })), Date.now());
    findSilent();
  } catch {
    // The column keeps what was known; the page of runtimes shows the failure.
  }
}

/** "3 applications became Degraded": what a frame of changes comes to; empty when nothing got worse. */
export function sentence(worse: ReadonlyMap<string, number>): string {
  return [...worse].map(([health, count]) => `${count} ${count === 1 ? 'application' : 'applications'} became ${health}.`).join(' ');
}

/** Puts changes of Applications into the store and returns their number. */
function apply({ patches, gone }: Changes): number {
  let count = 0;
  const worse = new Map<string, number>();
  for (const row of patches.values()) {
    if (row.topic !== 'index' || typeof row.uid !== 'string') continue;
    const { row: at, added, changed } = applications.put(streamedRow(row));
    const health = applications.columns.health[at]!;
    if (!added && changed.includes('health') && ['Degraded', 'Missing'].includes(health)) worse.set(health, (worse.get(health) ?? 0) + 1);
    ++count;
  }
  for (const [key, topic] of gone) {
    if (topic !== 'index') continue;
    applications.remove(key.slice('index '.length));
    ++count;
  }
  if (worse.size > 0) announce(sentence(worse));
  return count;
}

// What came while a reading was under way: it is newer than the reading, so it is applied once more behind it.
const late = { patches: new Map<string, Record<string, unknown>>(), gone: new Map<string, string>() };
function keepLate(part: 'patches' | 'gone', key: string, value: Record<string, unknown> | string): void {
  late[part === 'gone' ? 'patches' : 'gone'].delete(key);
  (late[part] as Map<string, unknown>).set(key, value);
}

function hear({ patches }: Changes): void {
  let hasHeard = false;
  for (const row of patches.values()) {
    if (row.topic !== 'runtimes' || typeof row.name !== 'string') continue;
    contacts.hear(row.name, time(row.seenAt), Date.now());
    hasHeard = true;
  }
  if (hasHeard) findSilent();
}

/** Begins the stream, before it is known who asks: it takes as long as that. */
export function openStream(): void {
  follow(['index', 'runtimes']);
}

const PATIENCE = 1_000; // with a stream that does not open
const RESET_AFTER = 20; // milliseconds in which a reset follows the opening of a stream
/** Begins the first reading when the stream is open, since a stream that begins tells to read, or when there is none. */
function readFirst(): void {
  const isRead = () => running !== null || loadState.peek().state !== 'never';
  const begin = () => { if (!isRead()) void readApplications(); };
  const late = setTimeout(begin, PATIENCE);
  const stop = effect(() => {
    const { state } = live.value;
    if (state === 'connecting') return undefined;
    clearTimeout(late);
    const timer = setTimeout(() => {
      stop();
      begin();
    }, state === 'live' ? RESET_AFTER : 0);
    return () => clearTimeout(timer);
  });
}

/** Reads which runtimes are silent when the stream is back. Without the stream, silence says nothing about them. */
function hearAgain(): void {
  let wasLive: boolean | undefined;
  effect(() => {
    const isLive = live.value.state === 'live';
    if (isLive && wasLive === false) {
      contacts.countAnew(Date.now());
      void readOffline();
    }
    if (isLive || wasLive) wasLive = isLive;
  });
}

let isStarted = false;
/** Begins to keep the store true. Does nothing when it has begun. */
export function keepApplications(): void {
  if (isStarted) return;
  isStarted = true;
  onChanges((changes) => {
    if (running) for (const part of ['patches', 'gone'] as const) for (const [key, value] of changes[part]) keepLate(part, key, value);
    if (apply(changes) > 0) rowsChanged();
    hear(changes);
  });
  onReset(() => void readApplications({ restart: true }));
  openStream();
  readFirst();
  void readOffline();
  setInterval(() => void readOffline(), 60_000);
  setInterval(findSilent, LOOK);
  hearAgain();
  effect(() => {
    // A reading that failed is tried again: the stream tells what changes, not what was missed.
    const hasFailed = loadState.value.state === 'failed' && loadState.value.failure?.kind !== 'refused';
    if (live.value.state !== 'unavailable' && !hasFailed) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) void readApplications();
    }, POLL);
    return () => clearInterval(timer);
  });
}
