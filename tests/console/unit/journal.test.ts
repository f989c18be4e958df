import { describe, expect, it } from 'vitest';

import { delay, whatOf, type Delivery } from '../../../apps/control-plane/console/src/pages/application/journal';

const delivery = (more: Partial<Delivery>): Delivery => ({ kind: 'LATEST', eventId: 'e1', sequence: '1', reportedAt: null, receivedAt: '2026-03-04T09:12:02Z', step: 'CHANGED', object: { group: null, kind: 'ConfigMap', namespace: 'shop', name: 'settings' },
  revision: null, syncStatus: null, healthStatus: null, healthMessage: null, phase: null, commitAuthor: null, commitMessage: null, reason: null, bytes: null, ...more });

describe('an entry of the journal', () => {
  it('says in one line what arrived', () => {
    expect(whatOf(delivery({}))).toBe('ConfigMap settings');
    expect(whatOf(delivery({ step: 'GONE' }))).toBe('ConfigMap settings, deleted');
    expect(whatOf(delivery({ kind: 'REFUSED', object: null, step: null, reason: 'data is not an object' }))).toBe('data is not an object');
  });
  it('says how long it was under way, if that is known', () => {
    expect(delay(delivery({ reportedAt: '2026-03-04T09:12:01.700Z' }))).toBe('0.3 s');
    expect(delay(delivery({ reportedAt: '2026-03-04T09:02:00Z' }))).toBe('10 min');
    expect(delay(delivery({ reportedAt: '2026-03-04T09:12:03Z' }))).toBe('0.0 s');
    expect(delay(delivery({}))).toBe('');
  });
});
