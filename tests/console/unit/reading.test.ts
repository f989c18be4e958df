import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

let Readings: typeof import('../../../apps/control-plane/console/src/ui/read').Readings;
beforeAll(async () => {
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} });
  ({ Readings } = await import('../../../apps/control-plane/console/src/ui/read'));
});
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Readings that take a time each. Returns how many have begun and how many came to their end. */
function slow(milliseconds: number) {
  const counts = { begun: 0, done: 0, aborted: 0 };
  const readings = new Readings(async (signal) => {
    ++counts.begun;
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    if (signal.aborted) ++counts.aborted;
    else ++counts.done;
  });
  return { readings, counts };
}

describe('readings', () => {
  it('come to an end although something changes faster than it can be read', async () => {
    const { readings, counts } = slow(800);
    for (let at = 0; at < 30; ++at) {
      readings.again();
      await vi.advanceTimersByTimeAsync(300);
    }
    expect(counts.done).toBeGreaterThanOrEqual(9);
    expect(counts.aborted).toBe(0);
  });
  it('begin once more when they were asked for in the middle of one', async () => {
    const { readings, counts } = slow(800);
    readings.again();
    await vi.advanceTimersByTimeAsync(100);
    readings.again();
    readings.again();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(counts).toEqual({ begun: 2, done: 2, aborted: 0 });
  });
  it('are given up when one hangs', async () => {
    const { readings, counts } = slow(120_000);
    readings.again();
    await vi.advanceTimersByTimeAsync(21_000);
    readings.again();
    expect(counts.begun).toBe(2);
  });
  it('stop', async () => {
    const { readings, counts } = slow(800);
    readings.again();
    readings.again();
    readings.stop();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(counts).toEqual({ begun: 1, done: 0, aborted: 1 });
  });
});
