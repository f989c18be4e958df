import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { announce, announcement } from '../../../apps/control-plane/console/src/shell/announce';

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

it('says at most one sentence in ten seconds, the last one', () => {
  const said: string[] = [];
  const stop = announcement.subscribe((text) => { if (text) said.push(text); });
  vi.setSystemTime(100_000);
  announce('first');
  vi.advanceTimersByTime(0);
  for (const text of ['second', 'third', 'fourth']) announce(text);
  vi.advanceTimersByTime(9_999);
  expect(said).toEqual(['first']);
  vi.advanceTimersByTime(1);
  expect(said).toEqual(['first', 'fourth']);
  stop();
});
