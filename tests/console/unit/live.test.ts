import { describe, expect, it } from 'vitest';

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
