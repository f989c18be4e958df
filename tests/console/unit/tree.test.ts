import { describe, expect, it } from 'vitest';

import { layout, type Node } from '../../../apps/control-plane/console/src/graph/layout';
import { verdict, webAddress, type ApplicationDetail } from '../../../apps/control-plane/console/src/pages/application/types';

const node = (name: string, health = 'Healthy', children: Node[] = []): Node => ({ id: name, kind: 'Pod', name, health, sync: '', children });

describe('tree', () => {
  it('folds equal healthy siblings and never what is in trouble', () => {
    const root = node('root', 'Degraded', [...Array.from({ length: 20 }, (_, index) => node(`ok-${index}`)), ...Array.from({ length: 9 }, (_, index) => node(`bad-${index}`, 'Degraded'))]);
    const { placed } = layout(root);
    expect(placed.filter((one) => one.folded > 0).map((one) => one.folded)).toEqual([20]);
    expect(placed.filter((one) => one.node.health === 'Degraded')).toHaveLength(10);
    expect(placed[1]!.node.health).toBe('Degraded'); // trouble first
    const fold = placed.find((one) => one.folded > 0)!;
    expect(layout(root, new Set([fold.id])).placed).toHaveLength(30);
  });
  it('puts a parent beside its first child and nothing on top of another', () => {
    const { placed } = layout(node('root', 'Healthy', [node('a', 'Healthy', [node('b'), node('c')]), node('d')]));
    expect(placed[0]).toMatchObject({ x: 0, y: 0 });
    expect(new Set(placed.map((one) => `${one.x} ${one.y}`)).size).toBe(placed.length);
  });
  it('says how many it does not draw', () => {
    const root = node('root', 'Degraded', Array.from({ length: 2_000 }, (_, index) => node(`n-${index}`, 'Degraded')));
    const drawn = layout(root);
    expect(drawn.placed.length + drawn.hidden).toBe(2_001);
  });
});

describe('an application', () => {
  const app = (more: object) => ({ healthStatus: 'HEALTHY', syncStatus: 'SYNCED', healthMessage: null, operation: null, resources: [], ...more }) as unknown as ApplicationDetail;
  it('is summed up by what is worst', () => {
    expect(verdict(app({}), false)).toMatchObject({ tone: 'ok' });
    expect(verdict(app({}), true).text).toContain('silent');
    expect(verdict(app({ operation: { phase: 'Failed', message: 'no such namespace' } }), false)).toEqual({ tone: 'bad', text: 'The last sync failed: no such namespace' });
    expect(verdict(app({ healthStatus: null }), false)).toMatchObject({ tone: 'mute' });
    expect(verdict(app({ healthStatus: 'DEGRADED', resources: [{ kind: 'Deployment', name: 'api', healthStatus: 'DEGRADED', healthMessage: 'crashes' }] }), false).text).toBe('Deployment api: crashes.');
  });
  it('links to addresses of the web alone', () => {
    expect(webAddress('https://git.example.com/a')).toBe('https://git.example.com/a');
    for (const text of ['javascript:alert(1)', ' https://x', 'data:text/html,x', '//x', '', null]) expect(webAddress(text)).toBeUndefined();
  });
});
