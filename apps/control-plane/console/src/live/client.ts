// The page's side of the stream. Changes of one row replace each other until the next frame, so that a hidden page,
// which gets no frames, does not grow.
import { signal } from '@preact/signals';

import workerAddress from './worker.ts?worker&url';
import { scriptAddress } from './script_address';
import { Stream, type Live, type Message } from './stream';

export const live = signal<Live>({ state: 'connecting' });
/** Since when the server itself has no fresh data; 0: it has. */
export const staleSince = signal(0);

export interface Changes {
  patches: ReadonlyMap<string, Record<string, unknown>>; // "topic uid" -> the whole row
  gone: ReadonlyMap<string, string>; // "topic uid" -> topic
}
type Take = (changes: Changes) => void;
type Reset = () => void;
const takers = new Set<Take>();
const resetters = new Set<Reset>();
let onEnd: () => void = () => {};
/** Sets what is called when the server ends the stream with the session. */
export function whenStreamEnds(call: () => void): void {
  onEnd = call;
}

let patches = new Map<string, Record<string, unknown>>();
let gone = new Map<string, string>();
let isScheduled = false;

function flush(): void {
  isScheduled = false;
  const changes = { patches, gone };
  patches = new Map();
  gone = new Map();
  for (const take of takers) take(changes);
}

/** Takes an event of the stream. Exported for tests. */
export function receive(type: string, data: unknown): void {
  const content = (data ?? {}) as { rows?: Record<string, unknown>[]; topic?: string; uids?: string[]; since?: string };
  if (type === 'reset') {
    // What waits for a frame, in a page that is not seen for long, is older than what is read now.
    patches = new Map();
    gone = new Map();
    for (const reset of resetters) reset();
  } else if (type === 'stale') staleSince.value = Date.parse(content.since ?? '') || Date.now();
  else if (type === 'fresh') staleSince.value = 0;
  else if (type === 'end') onEnd();
  if (type !== 'patch' && type !== 'gone') return;
  for (const row of content.rows ?? []) {
    // Objects that the cluster does not have yet have an empty uid. Runtimes have none, and are named.
    const id = row.uid === '' ? [row.kind, row.runtime, row.namespace, row.name].join('/') : String(row.uid ?? row.name);
    const key = `${String(row.topic)} ${id}`;
    gone.delete(key);
    patches.set(key, row);
  }
  for (const uid of content.uids ?? []) {
    const key = `${content.topic} ${uid}`;
    patches.delete(key);
    gone.set(key, content.topic ?? '');
  }
  if (!isScheduled) {
    isScheduled = true;
    requestAnimationFrame(flush);
  }
}

/** Calls `take` once a frame with what has changed. Returns how to end that. */
export function onChanges(take: Take): () => void {
  takers.add(take);
  return () => takers.delete(take);
}
/** Calls `reset` when the page has to read its data again. */
export function onReset(reset: Reset): () => void {
  resetters.add(reset);
  return () => resetters.delete(reset);
}

function handle(message: Message | { kind: 'ping' }, post: (message: unknown) => void): void {
  if (message.kind === 'state') live.value = message.live;
  else if (message.kind === 'event') receive(message.type, message.data);
  else post({ kind: 'pong' });
}

interface Source {
  follow(topics: string[]): void;
  retry(): void;
}
let source: Source | undefined;

function fromWorker(): Source {
  const worker = new SharedWorker(scriptAddress(workerAddress), { type: 'module', name: 'console' });
  const post = (message: unknown) => worker.port.postMessage(message);
  worker.port.onmessage = ({ data }: MessageEvent<Message>) => handle(data, post);
  worker.port.start();
  addEventListener('pagehide', () => post({ kind: 'bye' }));
  return { follow: (topics) => post({ kind: 'follow', topics }), retry: () => post({ kind: 'retry' }) };
}

function direct(): Source {
  const stream = new Stream((message) => handle(message, () => {}));
  let topics: string[] = [];
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) return stream.retry();
    stream.stop();
    live.value = { state: 'connecting' }; // nothing is known of the time until it is shown again
  });
  return {
    follow: (wanted) => {
      topics = wanted;
      stream.follow(topics);
    },
    retry: () => stream.retry(),
  };
}

let always: string[] = [];
const pageTopics = new Map<string, number>(); // topic -> parts of the page that want it
let due: ReturnType<typeof setTimeout> | undefined;
const PASSED_BY = 250;
function tellTopics(): void {
  source?.follow([...always, ...pageTopics.keys()]);
}

/** Begins to stream these topics. */
export function follow(topics: string[]): void {
  always = topics;
  if (source) return tellTopics();
  source = typeof SharedWorker === 'undefined' ? direct() : fromWorker();
  tellTopics();
  addEventListener('pageshow', (event: Event) => {
    if ((event as PageTransitionEvent).persisted) tellTopics();
  });
}
/** Streams another topic, too, until the returned function is called. A page that is only passed by asks for nothing. */
export function followAlso(topic: string): () => void {
  const change = (by: 1 | -1) => {
    const count = (pageTopics.get(topic) ?? 0) + by;
    if (count > 0) pageTopics.set(topic, count);
    else pageTopics.delete(topic);
    clearTimeout(due);
    due = setTimeout(tellTopics, PASSED_BY);
  };
  change(1);
  return () => change(-1);
}
export function retryNow(): void {
  source?.retry();
}
