import { beforeAll, expect, it, vi } from 'vitest';

let audit: typeof import('../../../apps/control-plane/console/src/pages/audit/audit');
beforeAll(async () => {
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} });
  audit = await import('../../../apps/control-plane/console/src/pages/audit/audit');
});

it('a day is from its begin to the begin of the next one, where the reader is', () => {
  for (const day of ['2026-01-01', '2026-02-28', '2026-12-31']) {
    expect(audit.dayOf(audit.timeOf(day))).toBe(day);
    const hours = (Date.parse(audit.timeOf(day, true)) - Date.parse(audit.timeOf(day))) / 3_600_000;
    expect(hours).toBeGreaterThanOrEqual(23); // a day of a change of clocks
    expect(hours).toBeLessThanOrEqual(25);
  }
  // The year of a field for dates while it is being typed.
  for (const day of ['0002-03-04', '0020-03-04', '0202-03-04']) expect(audit.dayOf(audit.timeOf(day))).toBe(day);
  expect([audit.timeOf(''), audit.dayOf(''), audit.dayOf('nonsense')]).toEqual(['', '', '']);
});

it('yesterday is that of the servers, whose times the entries have', async () => {
  const { clockOffset } = await import('../../../apps/control-plane/console/src/data/clock');
  vi.useFakeTimers({ now: new Date(2026, 2, 4, 12), toFake: ['Date'] });
  expect(audit.dayOf(audit.yesterday().from)).toBe('2026-03-03');
  clockOffset.value = -24 * 3_600_000;
  expect(audit.dayOf(audit.yesterday().from)).toBe('2026-03-02');
  clockOffset.value = 0;
  vi.useRealTimers();
});
