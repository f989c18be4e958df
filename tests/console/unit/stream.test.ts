// The stream and the worker that shares it, against responses that a test writes.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Stream, type Live, type Message } from '../../../apps/control-plane/console/src/live/stream';

type Post = { kind: string; type?: string; live?: Live };
let requests: { headers: Record<string, string>; write: (text: string) => void; end: () => void }[];
let answer: (signal: AbortSignal, headers: Record<string, string>) => Response;

/** A response that stays open until it is ended, or its request is aborted. */
function stream(signal: AbortSignal, headers: Record<string, string>): Response {
  let control!: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({ start: (given) => { control = given; } });
  signal.addEventListener('abort', () => control.error(new DOMException('aborted', 'AbortError')));
  requests.push({ headers, write: (text) => control.enqueue(new TextEncoder().encode(text)), end: () => control.close() });
  return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
}
/** Lets what is under way in streams and promises come to its end. */
const settle = () => vi.advanceTimersByTimeAsync(1);

beforeEach(() => {
  vi.useFakeTimers();
  requests = [];
  answer = stream;
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => answer(init.signal!, init.headers as Record<string, string>));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('a stream', () => {
  const states = (told: Message[]) => told.flatMap((one) => (one.kind === 'state' ? [one.live.state] : []));
  it('that was there is not given up for what a proxy says while the server restarts', async () => {
    const told: Message[] = [];
    const one = new Stream((message) => told.push(message));
    one.follow(['index']);
    await settle();
    answer = () => new Response('default backend - 404', { status: 404 });
    requests[0]!.end();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(states(told)).not.toContain('unavailable');
    answer = stream;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(states(told).at(-1)).toBe('live');
    one.stop();
  });
  it('that was never there is looked for again, a minute later', async () => {
    const told: Message[] = [];
    const one = new Stream((message) => told.push(message));
    answer = () => new Response('<html>Sign in to the network</html>', { headers: { 'Content-Type': 'text/html' } });
    one.follow(['index']);
    await settle();
    expect(states(told)).toEqual(['unavailable']);
    answer = stream;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(states(told)).toEqual(['unavailable', 'live']);
    one.stop();
  });
});

describe('old data', () => {
  const STALE = 'event: stale\ndata: {"since":"2026-03-04T09:12:00.000Z"}\n\n';
  /** Hears of old data, then follows another topic, whose stream begins with this text. Returns the events. */
  async function beginAgain(text: string): Promise<string[]> {
    const told: Message[] = [];
    const one = new Stream((message) => told.push(message));
    one.follow(['index']);
    await settle();
    requests[0]!.write(STALE);
    await settle();
    one.follow(['app:a', 'index']);
    await settle();
    requests[1]!.write(text);
    await settle();
    one.stop();
    return told.flatMap((message) => (message.kind === 'event' ? [message.type] : []));
  }
  it('are taken back by a stream that begins at a server with fresh ones, which does not say so', async () => {
    expect(await beginAgain(': still here\n\n')).toEqual(['stale', 'fresh']);
  });
  it('stay old where the stream begins with that', async () => {
    expect(await beginAgain(`: still here\n\n${STALE}`)).toEqual(['stale', 'stale']);
  });
});

describe('the worker', () => {
  /** Opens a page. It answers pings until it is frozen. */
  function page(connect: (event: unknown) => void) {
    const got: Post[] = [];
    let isFrozen = false;
    const held: Post[] = [];
    const port = { onmessage: null as ((event: { data: unknown }) => void) | null, postMessage: (message: Post) => (isFrozen ? held.push(message) : take(message)) };
    const send = (data: object) => port.onmessage!({ data });
    const take = (message: Post) => {
      got.push(message);
      if (message.kind === 'ping') send({ kind: 'pong' });
    };
    connect({ ports: [port] });
    return { got, send, freeze: () => { isFrozen = true; }, thaw: () => { isFrozen = false; held.splice(0).forEach(take); } };
  }
  let connect: (event: unknown) => void;
  beforeEach(async () => {
    vi.resetModules();
    vi.stubGlobal('addEventListener', (type: string, call: (event: unknown) => void) => { if (type === 'connect') connect = call; });
    await import('../../../apps/control-plane/console/src/live/worker');
  });
  const patch = 'id: 7\nevent: patch\ndata: {"rows":[]}\n\n';
  const events = (got: Post[]) => got.flatMap((one) => (one.kind === 'event' ? [one.type] : []));

  it('takes a page that the browser had frozen in again, and has it read what it missed', async () => {
    const [shown, hidden] = [page(connect), page(connect)];
    for (const one of [shown, hidden]) one.send({ kind: 'follow', topics: ['index'] });
    await settle();
    hidden.freeze();
    for (let at = 0; at < 12; ++at) { // two minutes
      requests.at(-1)!.write(': still here\n\n');
      await vi.advanceTimersByTimeAsync(10_000);
    }
    hidden.thaw();
    await settle();
    expect(events(hidden.got)).toEqual(['reset']);
    requests.at(-1)!.write(patch);
    await settle();
    expect(events(hidden.got)).toEqual(['reset', 'patch']);
    expect(events(shown.got)).toEqual(['patch']);
  });
  it('tells a page that comes later that the data are old', async () => {
    const one = page(connect);
    one.send({ kind: 'follow', topics: ['index'] });
    await settle();
    requests.at(-1)!.write('event: stale\ndata: {"since":"2026-03-04T09:12:00.000Z"}\n\n');
    await settle();
    const later = page(connect);
    later.send({ kind: 'follow', topics: ['index'] });
    await settle();
    expect([events(one.got), events(later.got)]).toEqual([['stale'], ['stale']]);
    requests.at(-1)!.write('event: fresh\ndata: {}\n\n');
    await settle();
    const last = page(connect);
    last.send({ kind: 'follow', topics: ['index'] });
    await settle();
    expect([events(later.got), events(last.got)]).toEqual([['stale', 'fresh'], ['fresh']]);
  });
  it('takes a page in again that the browser goes back to', async () => {
    const [one, left] = [page(connect), page(connect)];
    one.send({ kind: 'follow', topics: ['index'] });
    left.send({ kind: 'follow', topics: ['index', 'app:a'] });
    await settle();
    left.send({ kind: 'bye' });
    await settle();
    left.send({ kind: 'follow', topics: ['index', 'app:a'] });
    await settle();
    requests.at(-1)!.write(patch);
    await settle();
    expect(events(left.got)).toEqual(['reset', 'patch']);
  });
});
