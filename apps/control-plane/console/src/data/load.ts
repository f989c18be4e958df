// Fills the store of applications: whole readings through GraphQL, changes from the stream, and readings every 15 s where
// there is no stream.
import { effect } from '@preact/signals';

import { follow, live, onChanges, onReset } from '../live/client';
import { streamedRow, time, type ApplicationRow } from '../store/applications';
import { applications, frames, loadState, offline, readings } from '../store/state';
import { word } from '../store/states';
import { APPLICATIONS, RUNTIMES } from './documents';
import { failureOf, query } from './request';

const PAGE = 1_000; // the most that the server allows
const POLL = 15_000;

export interface ApplicationNode {
  metadata: { uid: string | null; runtime: string; namespace: string | null; name: string; cluster: string | null; lastUpdated: string | null;
    labels: { key: string; value: string }[] | null };
  healthStatus: string | null;
  healthMessage: string | null;
  syncStatus: string;
  syncPolicy: string | null;
  revision: string | null;
  updatedAt: string | null;
  repoURL: string | null;
  project: string | null;
  destination: { name: string | null; server: string | null; namespace: string | null } | null;
  status: { commitAuthor: string | null; commitMessage: string | null };
  operationState: { phase: string | null; message: string | null } | null;
}

export function rowOfNode(node: ApplicationNode): ApplicationRow {
  const { metadata, destination, status, operationState } = node;
  const isWrong = ['Failed', 'Error'].includes(word(operationState?.phase));
  return {
    uid: metadata.uid ?? `${metadata.runtime}/${metadata.namespace}/${metadata.name}`,
    runtime: metadata.runtime,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    health: word(node.healthStatus),
    sync: word(node.syncStatus),
    phase: operationState?.phase ? word(operationState.phase) : '',
    revision: node.revision ?? '',
    message: node.healthMessage || (isWrong ? operationState?.message : '') || status.commitMessage || '',
    author: status.commitAuthor ?? '',
    cluster: destination?.name || destination?.server || metadata.cluster || '',
    project: node.project ?? '',
    repo: node.repoURL ?? '',
    labels: (metadata.labels ?? []).map(({ key, value }) => `${key}=${value}`),
    autoSync: node.syncPolicy === 'Automated',
    changedAt: time(node.updatedAt),
    seenAt: time(metadata.lastUpdated),
  };
}

interface ApplicationsAnswer {
  applications: { edges: { node: ApplicationNode }[]; pageInfo: { endCursor: string | null; hasNextPage: boolean } };
}

async function readAll(): Promise<ApplicationRow[]> {
  const rows: ApplicationRow[] = [];
  for (let after = ''; ;) {
    const { applications: slice } = await query<ApplicationsAnswer>('read the applications', APPLICATIONS, { after, first: PAGE });
    for (const { node } of slice.edges) rows.push(rowOfNode(node));
    if (!slice.pageInfo.hasNextPage || !slice.pageInfo.endCursor) return rows;
    after = slice.pageInfo.endCursor;
  }
}

let running: Promise<void> | null = null;

/** Reads all applications. A reading that is under way serves all who ask. */
export function readApplications(): Promise<void> {
  running ??= (async () => {
    loadState.value = { ...loadState.peek(), state: 'loading' };
    try {
      applications.replace(await readAll());
      loadState.value = { state: 'done', at: Date.now(), failure: null };
      readings.value++;
      frames.value++;
    } catch (error) {
      loadState.value = { ...loadState.peek(), state: 'failed', failure: failureOf('read the applications', error) };
    } finally {
      running = null;
    }
  })();
  return running;
}

async function readOffline(): Promise<void> {
  try {
    const { runtimes } = await query<{ runtimes: { edges: { node: { metadata: { name: string }; available: boolean; lastUpdated: string | null } }[] } }>('read the runtimes', RUNTIMES);
    offline.value = new Set(runtimes.edges.filter(({ node }) => !node.available && node.lastUpdated).map(({ node }) => node.metadata.name));
  } catch {
    // The column keeps what was known; the page of runtimes shows the failure.
  }
}

let isStarted = false;
/** Begins to keep the store true. Does nothing when it has begun. */
export function keepApplications(): void {
  if (isStarted) return;
  isStarted = true;
  onChanges(({ patches, gone }) => {
    let count = 0;
    for (const row of patches.values()) {
      if (row.topic !== 'index' || typeof row.uid !== 'string') continue;
      applications.put(streamedRow(row));
      ++count;
    }
    for (const [key, topic] of gone) {
      if (topic !== 'index') continue;
      applications.remove(key.slice('index '.length));
      ++count;
    }
    if (count > 0) frames.value++;
  });
  onReset(() => void readApplications());
  follow(['index', 'runtimes']);
  void readApplications();
  void readOffline();
  setInterval(() => void readOffline(), 60_000);
  effect(() => {
    if (live.value.state !== 'unavailable') return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) void readApplications();
    }, POLL);
    return () => clearInterval(timer);
  });
}
