import { beforeAll, expect, it, vi } from 'vitest';

let page: typeof import('../../../apps/control-plane/console/src/pages/application/diff');
beforeAll(async () => {
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} });
  page = await import('../../../apps/control-plane/console/src/pages/application/diff');
});

it('the objects that are left out are told', () => {
  const resources = (count: number) => Array.from({ length: count }, (_, at) => ({ group: '', version: 'v1', kind: 'ConfigMap', namespace: 'shop', name: `c${at}`, syncStatus: 'OUT_OF_SYNC', healthStatus: null, healthMessage: null, hook: null, requiresPruning: null }));
  expect(page.objectsOf(resources(20), '')).toHaveLength(20);
  expect(page.leftOut(resources(20), '')).toBe('');
  expect(page.objectsOf(resources(63), '')).toHaveLength(20);
  expect(page.leftOut(resources(63), '')).toBe('These are the first 20 of 63 objects that differ from Git. Choose an object to see another one.');
  expect(page.leftOut(resources(63), ':ConfigMap:shop:c62')).toBe('');
});
