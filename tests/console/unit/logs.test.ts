import { afterEach, describe, expect, it, vi } from 'vitest';

import { openLog } from '../../../apps/control-plane/console/src/logs/open';
import { Behind, lineOf, read, type ReaderState } from '../../../apps/control-plane/console/src/logs/reader';
import { fileOf, hitsOf, letterOf, Ring, rowsOf, toneOf, type Line } from '../../../apps/control-plane/console/src/logs/ring';

const line = (text: string, time = '2026-03-04T09:12:00Z', pod = 'api-1'): Line => ({ pod, container: 'main', time, text });

describe('the ring', () => {
  it('keeps the newest lines and counts those that it drops', () => {
    const ring = new Ring(3);
    for (const text of ['a', 'b', 'c', 'd', 'e']) ring.push(line(text));
    expect([ring.size, ring.dropped]).toEqual([3, 2]);
    expect([0, 1, 2].map((at) => ring.at(at).text)).toEqual(['c', 'd', 'e']);
    ring.clear();
    expect([ring.size, ring.dropped]).toEqual([0, 0]);
  });
  it('holds 50,000 lines and no more', () => {
    const ring = new Ring();
    for (let at = 0; at < 60_000; ++at) ring.push(line(String(at)));
    expect([ring.size, ring.dropped, ring.at(0).text]).toEqual([50_000, 10_000, '10000']);
  });
  it('finds a text in any case, and nothing without one', () => {
    const ring = new Ring(4);
    for (const text of ['old error', 'x', 'Error 1', 'y', 'ERROR 2']) ring.push(line(text));
    expect(hitsOf(ring, 'error')).toEqual([1, 3]);
    expect(hitsOf(ring, '')).toEqual([]);
  });
  it('is wrapped into rows of one height', () => {
    const ring = new Ring();
    ring.push(line('abcdefg'));
    ring.push(line(''));
    expect(rowsOf(ring, 3)).toEqual([{ line: 0, from: 0 }, { line: 0, from: 3 }, { line: 0, from: 6 }, { line: 1, from: 0 }]);
    expect(rowsOf(ring, Infinity)).toHaveLength(2);
  });
  it('becomes a file that says what is missing', () => {
    const ring = new Ring(1);
    ring.push(line('a'));
    ring.push(line('b'));
    expect(fileOf(ring)).toBe('# 1 older lines are not in this file\n2026-03-04T09:12:00Z api-1/main b\n');
  });
});

it.each([['E0304 09:12:00 x', 'bad'], ['{"level":"error"}', 'bad'], ['level=warning msg', 'warn'], ['DEBUG x', 'mute'], ['terrors', ''], ['all is well', '']])('the tone of %s is %s', (text, tone) => {
  expect(toneOf(text)).toBe(tone);
});
it('pods have letters', () => expect([0, 25, 26].map(letterOf)).toEqual(['A', 'Z', 'A']));
it('a line that is none is left out', () => {
  expect(lineOf('{')).toBeNull();
  expect(lineOf('{"podName":7,"content":"x"}')).toEqual({ pod: '', container: '', time: '', text: 'x' });
});

it('a line has no colours of a terminal, so that its level and its words are found', () => {
  const { text } = lineOf(JSON.stringify({ podName: 'a', content: '\u001b[31;1mE\u001b[0m0304 pay\u001b[1mment\u001b[22m failed: [31m] x\u001b[2K' }))!;
  expect(text).toBe('E0304 payment failed: [31m] x');
  expect(toneOf(text)).toBe('bad');
});

describe('what comes again', () => {
  it('is dropped after another connection alone', () => {
    const behind = new Behind();
    expect(behind.again()).toBe('');
    expect([behind.isNew(line('a')), behind.isNew(line('a'))]).toEqual([true, true]);
    expect(behind.again()).toBe('2026-03-04T09:11:55.000Z');
    expect([behind.isNew(line('a')), behind.isNew(line('b')), behind.isNew(line('a', '2026-03-04T09:12:01Z'))]).toEqual([false, true, true]);
  });
});

describe('the reader', () => {
  const encoder = new TextEncoder();
  const events = (...parts: string[]) => new Response(new ReadableStream({ start: (control) => {
    for (const part of parts) control.enqueue(encoder.encode(part));
    control.close();
  } }), { headers: { 'Content-Type': 'text/event-stream' } });
  const log = (text: string) => `event: log\ndata: ${JSON.stringify({ podName: 'api-1', timestamp: '2026-03-04T09:12:00Z', content: text })}\n\n`;
  async function run(answers: (Response | Error)[]) {
    const [seen, states, troubles, asked] = [[] as string[], [] as ReaderState[], [] as string[], [] as string[]];
    await read({
      open: (since) => {
        asked.push(since);
        const answer = answers.shift()!;
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
      },
      take: (lines) => seen.push(...lines.map(({ text }) => text)), trouble: (text) => troubles.push(text), state: (state) => states.push(state),
    }, new AbortController().signal);
    return { seen, states: states.map(({ kind }) => kind), troubles, asked, last: states.at(-1)! };
  }
  it('reads to the end, and tells what went wrong with single pods', async () => {
    const { seen, states, troubles } = await run([events(log('a'), 'event: trouble\ndata: pod x is gone\n\n', log('b'), 'event: end\ndata: {}\n\n')]);
    expect([seen, states, troubles]).toEqual([['a', 'b'], ['opening', 'reading', 'ended'], ['pod x is gone']]);
  });
  it('goes on behind the last line when the connection breaks, or the token ends', async () => {
    const { seen, states, asked, troubles } = await run([events(log('a')), events(log('a'), log('b'), 'event: trouble\ndata: Unauthorized\n\nevent: end\ndata: {}\n\n'), events(log('c'), 'event: end\ndata: {}\n\n')]);
    expect(seen).toEqual(['a', 'b', 'c']);
    expect(asked).toEqual(['', '2026-03-04T09:11:55.000Z', '2026-03-04T09:11:55.000Z']);
    expect([states.filter((kind) => kind === 'waiting').length, troubles]).toEqual([2, []]);
  });
  it('stops at a refusal with its reason', async () => {
    const { last } = await run([new Response('{"message":"VIEW_POD_LOGS is needed"}', { status: 403 })]);
    expect(last).toEqual({ kind: 'failed', status: 403, requestId: '', message: 'VIEW_POD_LOGS is needed' });
  });
  it('takes no page of a proxy for a log', async () => {
    const { last } = await run([new Response('<html>', { headers: { 'Content-Type': 'text/html' } })]);
    expect(last).toEqual({ kind: 'failed', status: 200, requestId: '', message: 'The answer is no log.' });
  });
  it('takes a silent connection for a broken one', async () => {
    vi.useFakeTimers();
    const states: ReaderState[] = [];
    let opened = 0;
    const control = new AbortController();
    void read({
      open: async (_since, signal) => {
        ++opened;
        return new Response(new ReadableStream({ start: (stream) => {
          stream.enqueue(encoder.encode(log('a')));
          signal.addEventListener('abort', () => stream.error(new DOMException('aborted', 'AbortError')));
        } }), { headers: { 'Content-Type': 'text/event-stream' } });
      },
      take: () => {}, trouble: () => {}, state: (state) => states.push(state),
    }, control.signal);
    await vi.advanceTimersByTimeAsync(45_000);
    expect([opened, states.at(-1)!.kind]).toEqual([1, 'reading']);
    await vi.advanceTimersByTimeAsync(7_000);
    expect(opened).toBe(2);
    expect(states.find(({ kind }) => kind === 'waiting')).toMatchObject({ message: 'Nothing was heard of the runtime for 50 seconds.' });
    control.abort();
    vi.useRealTimers();
  });
  it('tries again after a failure', async () => {
    const { states } = await run([new Error('network'), events('event: end\ndata: {}\n\n')]);
    expect(states).toEqual(['opening', 'waiting', 'opening', 'reading', 'ended']);
  });
});

describe('a log', () => {
  afterEach(() => void vi.unstubAllGlobals());
  it('is opened with another token when the one that is known has ended with its session', async () => {
    let made = 0;
    const sent: string[] = [];
    let accepted = 'page_2';
    vi.stubGlobal('fetch', async (address: string, { headers }: { headers: Record<string, string> }) => {
      if (address.startsWith('/console')) return Response.json({ token: `page_${++made}`, address: 'https://prod.example', expiresIn: 300 });
      sent.push(headers['x-access-token']!);
      return new Response('', { status: headers['x-access-token'] === accepted ? 200 : 401 });
    });
    const { signal } = new AbortController();
    expect((await openLog('prod', { follow: 'true' }, signal)).status).toBe(200);
    expect(sent).toEqual(['page_1', 'page_2']);
    accepted = 'none';
    expect((await openLog('prod', { follow: 'true' }, signal)).status).toBe(401);
    expect(sent).toHaveLength(4);
  });
});
