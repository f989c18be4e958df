import { afterEach, beforeEach, expect, it, vi } from 'vitest';

let reading: () => Response;
let isAway = false; // the control plane is
const PROD = { node: { metadata: { name: 'prod' }, available: true, lastUpdated: '2026-03-04T09:00:00Z' } };
let runtimes: object[] = [];
let visibilityChanged: () => void;
const page = { hidden: false, addEventListener: (type: string, call: () => void) => { if (type === 'visibilitychange') visibilityChanged = call; } };
const rows = (...names: string[]) => () => Response.json({ data: { applications: { edges: names.map((name) => ({ node: {
  metadata: { uid: name, runtime: 'prod', namespace: 'argocd', name, cluster: null, lastUpdated: null, labels: null }, healthStatus: 'HEALTHY', syncStatus: 'SYNCED', status: {} } })), pageInfo: { endCursor: null, hasNextPage: false } } } });

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} });
  vi.stubGlobal('document', page);
  vi.stubGlobal('addEventListener', () => {});
  isAway = false;
  runtimes = [];
  vi.stubGlobal('fetch', async (address: string, init: RequestInit) => {
    if (isAway) throw new TypeError('Failed to fetch');
    if (address.startsWith('/console/api/v1/stream')) {
      const body = new ReadableStream({ start: (stream) => {
        const beat = setInterval(() => { if (!isAway) stream.enqueue(new TextEncoder().encode(':\n\n')); }, 15_000);
        init.signal!.addEventListener('abort', () => {
          clearInterval(beat);
          stream.error(init.signal!.reason);
        });
      } });
      return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
    }
    return String(init.body).includes('query Applications') ? reading() : Response.json({ data: { runtimes: { edges: runtimes } } });
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('a reading that failed after the stream had told to read is tried again', async () => {
  const { keepApplications } = await import('../../../apps/control-plane/console/src/data/load');
  const { applications, loadState } = await import('../../../apps/control-plane/console/src/store/state');
  const { receive } = await import('../../../apps/control-plane/console/src/live/client');
  reading = rows('shop', 'old');
  keepApplications();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(applications.size).toBe(2);
  reading = () => new Response('', { status: 503 });
  receive('reset', {});
  await vi.advanceTimersByTimeAsync(100);
  expect(loadState.value.state).toBe('failed');
  reading = rows('shop');
  await vi.advanceTimersByTimeAsync(20_000);
  expect([loadState.value.state, applications.size]).toEqual(['done', 1]);
});

it('a page without a worker is not called live for the time in which it was hidden', async () => {
  const { keepApplications } = await import('../../../apps/control-plane/console/src/data/load');
  const { live } = await import('../../../apps/control-plane/console/src/live/client');
  reading = rows('shop');
  keepApplications();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(live.value.state).toBe('live');
  page.hidden = true;
  visibilityChanged();
  expect(live.value.state).toBe('connecting');
  page.hidden = false;
  visibilityChanged();
  await vi.advanceTimersByTimeAsync(100);
  expect(live.value.state).toBe('live');
});

it('what waited for a frame is older than the reading that a reset asks for', async () => {
  const frames: (() => void)[] = [];
  vi.stubGlobal('requestAnimationFrame', (call: () => void) => frames.push(call));
  const { keepApplications } = await import('../../../apps/control-plane/console/src/data/load');
  const { applications } = await import('../../../apps/control-plane/console/src/store/state');
  const { receive } = await import('../../../apps/control-plane/console/src/live/client');
  reading = rows('shop');
  keepApplications();
  await vi.advanceTimersByTimeAsync(2_000);
  const gone = { topic: 'index', uids: ['shop'] };
  receive('gone', gone);
  // The page is not seen, the stream was away meanwhile, and the application was reported again.
  receive('reset', {});
  await vi.advanceTimersByTimeAsync(100);
  frames.shift()!();
  expect(applications.size).toBe(1);
  receive('gone', gone);
  frames.shift()!();
  expect(applications.size).toBe(0);
});

it('runtimes are not called silent for a time in which nothing could be heard of them', async () => {
  const { keepApplications } = await import('../../../apps/control-plane/console/src/data/load');
  const { offline } = await import('../../../apps/control-plane/console/src/store/state');
  const { live } = await import('../../../apps/control-plane/console/src/live/client');
  reading = rows('shop');
  runtimes = [PROD];
  keepApplications();
  await vi.advanceTimersByTimeAsync(2_000);
  vi.setSystemTime(Date.now() + 8 * 3_600_000); // the device slept
  await vi.advanceTimersByTimeAsync(12_000);
  expect([live.value.state, offline.value.size]).toEqual(['live', 0]);
  isAway = true; // the control plane is restored
  await vi.advanceTimersByTimeAsync(600_000);
  expect(live.value.state).toBe('lost');
  isAway = false;
  await vi.advanceTimersByTimeAsync(40_000);
  expect([live.value.state, offline.value.size]).toEqual(['live', 0]);
  // A stream that lives and says nothing of a runtime does count.
  await vi.advanceTimersByTimeAsync(320_000);
  expect(offline.value.size).toBe(1);
});

it('objects without a uid are rows of their own', async () => {
  vi.stubGlobal('requestAnimationFrame', (call: () => void) => setTimeout(call, 16));
  const { keepApplications } = await import('../../../apps/control-plane/console/src/data/load');
  const { applications } = await import('../../../apps/control-plane/console/src/store/state');
  const { onChanges, receive } = await import('../../../apps/control-plane/console/src/live/client');
  reading = rows('shop');
  keepApplications();
  await vi.advanceTimersByTimeAsync(2_000);
  let frame = 0;
  onChanges(({ patches }) => { frame = patches.size; });
  const sent = (topic: string, kind: string, name: string) => ({ topic, kind, uid: '', runtime: 'prod', namespace: 'argocd', name, health: 'MISSING' });
  receive('patch', { rows: [sent('index', 'Application', 'one'), sent('index', 'Application', 'two'), sent('app:a', 'Service', 'web'), sent('app:a', 'Deployment', 'web')] });
  await vi.advanceTimersByTimeAsync(100);
  expect([frame, applications.size]).toEqual([4, 3]);
  expect(applications.find('prod', 'argocd', 'one')).not.toBe(applications.find('prod', 'argocd', 'two'));
});

it('an application that may be gone is not listed as healthy, until it is heard of again', async () => {
  const { rowOfNode } = await import('../../../apps/control-plane/console/src/data/load');
  const { ApplicationStore, streamedRow } = await import('../../../apps/control-plane/console/src/store/applications');
  const node = (presence: string) => ({ metadata: { uid: 'a', runtime: 'prod', namespace: 'argocd', name: 'a' }, healthStatus: 'HEALTHY', syncStatus: 'SYNCED', presence, status: {}, seenAt: '2026-03-04T09:12:00Z' }) as unknown as Parameters<typeof rowOfNode>[0];
  expect(rowOfNode(node('LIVE'))).toMatchObject({ health: 'Healthy', sync: 'Synced' });
  expect(rowOfNode(node('STALE'))).toMatchObject({ health: 'Unknown', sync: 'Unknown' });
  const store = new ApplicationStore();
  store.put(rowOfNode(node('STALE')));
  store.put(streamedRow({ uid: 'a', health: 'HEALTHY', sync: 'SYNCED', seenAt: '2026-03-04T09:40:00Z' }));
  expect(store.at(0)).toMatchObject({ health: 'Healthy', sync: 'Synced' });
});
