import { afterEach, describe, expect, it, vi } from 'vitest';

import { SseParser } from '../../../apps/control-plane/console/src/live/sse';
import { topicsOf } from '../../../apps/control-plane/console/src/live/stream';

describe('topics', () => {
  it('are in one order, and those of single applications are cut first', () => {
    expect(topicsOf(['runtimes', 'app:b', 'index', 'app:a', 'index'])).toEqual(['index', 'runtimes', 'app:a', 'app:b']);
    const many = topicsOf([...Array.from({ length: 40 }, (_, index) => `app:${index}`), 'runtimes', 'index']);
    expect([many.length, many[0], many[1]]).toEqual([32, 'index', 'runtimes']);
  });
});

describe('server-sent events', () => {
  it('reads events, ids, comments and several lines', () => {
    const parser = new SseParser();
    expect(parser.feed('id: 7\nevent: patch\ndata: {"a":\ndata: 1}\n\n: still here\n\ndata:x\n\n')).toEqual([
      { type: 'patch', data: '{"a":\n1}', id: '7' },
      { type: 'message', data: 'x', id: '7' },
    ]);
  });
  it('does not care how the bytes are cut', () => {
    const text = 'id:1\r\nevent:reset\r\ndata:{}\r\n\r\nid:2\nevent:gone\ndata:{"uids":[]}\n\n';
    const whole = new SseParser().feed(text);
    const parser = new SseParser();
    expect([...text].flatMap((letter) => parser.feed(letter))).toEqual(whole);
    expect(whole.map((event) => event.id)).toEqual(['1', '2']);
  });
  it('drops an event without data, and keeps the id', () => {
    const parser = new SseParser('5');
    expect(parser.feed('event: patch\n\ndata: 1\n\n')).toEqual([{ type: 'message', data: '1', id: '5' }]);
  });
});

describe('the time of the server', () => {
  const HOUR = 3_600_000;
  const device = Date.UTC(2026, 2, 4, 9);
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
  it('is what ages and filters are counted by when the clock of the device is wrong', async () => {
    vi.useFakeTimers({ now: device, toFake: ['Date'] });
    const { request } = await import('../../../apps/control-plane/console/src/data/request');
    const { clockOffset, serverNow } = await import('../../../apps/control-plane/console/src/data/clock');
    const { age, now } = await import('../../../apps/control-plane/console/src/ui/time');
    const answer = async (at: number, took = 0) => {
      vi.stubGlobal('fetch', async () => {
        vi.setSystemTime(Date.now() + took);
        return Response.json({}, { headers: { Date: new Date(at).toUTCString() } });
      });
      await request('read something', '/api/user');
    };
    await answer(device + 2 * HOUR);
    expect([serverNow(), now.value]).toEqual([device + 2 * HOUR, device + 2 * HOUR]);
    expect(age(device, now.value)).toBe('2 h');
    await answer(device - HOUR);
    expect(age(device - HOUR - 600_000, serverNow())).toBe('10 min');
    // A slow response and the second to which the header is cut are no difference.
    await answer(device, 20_000);
    expect(clockOffset.value).toBe(0);
  });
  it('is that of what the page itself has done, too', async () => {
    const { clockOffset } = await import('../../../apps/control-plane/console/src/data/clock');
    const { clock, pageClock } = await import('../../../apps/control-plane/console/src/ui/time');
    clockOffset.value = -HOUR;
    expect(pageClock(device)).toBe(clock(device - HOUR));
    clockOffset.value = 0;
    expect(pageClock(device)).toBe(clock(device));
  });
  it('that is a year ago is not called a day of this year', async () => {
    vi.useFakeTimers({ now: device, toFake: ['Date'] });
    const { minute } = await import('../../../apps/control-plane/console/src/ui/time');
    expect(minute(device)).toMatch(/^\d\d:\d\d$/);
    expect(minute(device - 40 * 24 * HOUR)).toMatch(/^\d+ Jan \d\d:\d\d$/);
    expect(minute(device - 366 * 24 * HOUR)).toMatch(/^\d+ Mar 2025 \d\d:\d\d$/);
  });
});
