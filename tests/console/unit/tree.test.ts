import { describe, expect, it } from 'vitest';

import { layout, type Node } from '../../../apps/control-plane/console/src/graph/layout';
import { imagesOf, patchKey, verdict, webAddress, whyEmpty, withPatches, type ApplicationDetail, type Release } from '../../../apps/control-plane/console/src/pages/application/types';

const node = (name: string, health = 'Healthy', children: Node[] = []): Node => ({ id: name, kind: 'Pod', name, health, sync: '', children });

describe('tree', () => {
  it('folds equal healthy siblings and never what is in trouble', () => {
    const root = node('root', 'Degraded', [...Array.from({ length: 20 }, (_, index) => node(`ok-${index}`)), ...Array.from({ length: 9 }, (_, index) => node(`bad-${index}`, 'Degraded'))]);
    const { placed } = layout(root);
    expect(placed.filter((one) => one.folded > 0).map((one) => one.folded)).toEqual([20]);
    expect(placed.filter((one) => one.node.health === 'Degraded')).toHaveLength(10);
    expect(placed[1]!.node.health).toBe('Degraded'); // trouble first
    const fold = placed.find((one) => one.folded > 0)!;
    expect(layout(root, 'all').placed).toHaveLength(30);
    // An open fold stays, before its nodes, so that it can be closed.
    const opened = layout(root, new Set([fold.id])).placed;
    expect(opened).toHaveLength(31);
    expect(opened.find((one) => one.id === fold.id)!.isOpen).toBe(true);
    expect(opened.filter((one) => one.parent === fold.id)).toHaveLength(20);
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
    expect(verdict(app({}), true)).toEqual({ tone: 'warn', text: 'When its runtime was heard of last: It is healthy and as Git wants it.' });
    expect(verdict(app({ presence: 'STALE' }), false)).toEqual({ tone: 'warn', text: 'When it was reported last: It is healthy and as Git wants it.' });
    expect(verdict(app({ operation: { phase: 'Failed', message: 'no such namespace' } }), false)).toEqual({ tone: 'bad', text: 'The last sync failed: no such namespace' });
    expect(verdict(app({ healthStatus: null }), false)).toMatchObject({ tone: 'mute' });
    // What is not known, or waits, is not called healthy and as Git wants it.
    expect(verdict(app({ syncStatus: 'UNKNOWN', errors: [] }), false)).toEqual({ tone: 'mute', text: 'It is healthy. Whether it is as Git wants it is not known.' });
    expect(verdict(app({ healthStatus: 'SUSPENDED' }), false)).toEqual({ tone: 'mute', text: 'It is Suspended: something of it waits to be resumed.' });
    expect(verdict(app({ healthStatus: 'SOMETHING_NEW' }), false)).toEqual({ tone: 'mute', text: 'It is SomethingNew.' });
    expect(verdict(app({ syncStatus: 'UNKNOWN', errors: [{ level: 'ERROR', title: 'Synchronization failed', message: 'path does not exist' }] }), false)).toEqual({ tone: 'bad', text: "Argo CD can't compare it with its source: path does not exist" });
    expect(verdict(app({ healthStatus: 'DEGRADED', resources: [{ kind: 'Deployment', name: 'api', healthStatus: 'DEGRADED', healthMessage: 'crashes' }] }), false).text).toBe('Deployment api: crashes.');
  });
  it('says why it has no resources', () => {
    const source = { repoURL: 'r', path: 'apps/x', targetRevision: 'main', chart: null };
    expect(whyEmpty(app({ specSource: source }))).toBe('Argo CD finds nothing to deploy: the path apps/x at main renders to no manifests.');
    expect(whyEmpty(app({ specSource: null }))).toBe('It has no source.');
    expect(whyEmpty(app({ syncStatus: 'UNKNOWN', errors: [] }))).toContain('does not say why');
    expect(whyEmpty(app({ syncStatus: 'UNKNOWN', errors: [{ level: 'ERROR', message: 'no such path' }] }))).toContain('no such path');
  });
  it('takes what the stream says of a resource, unless it is older or not clear of which', () => {
    const service = { group: '', kind: 'Service', namespace: 'x', name: 'a', healthStatus: 'HEALTHY', syncStatus: 'SYNCED', healthMessage: 'fine' };
    const read = app({ seenAt: new Date(1_000).toISOString(), resources: [service] });
    const patched = (seenAt: number, resources = [service]) => withPatches({ ...read, resources } as ApplicationDetail, new Map([[patchKey('Service', 'x', 'a'), { health: 'DEGRADED', sync: null, seenAt }]])).resources!;
    expect(patched(2_000)[0]).toMatchObject({ healthStatus: 'DEGRADED', syncStatus: 'SYNCED', healthMessage: null });
    expect(patched(500)[0]).toEqual(service);
    expect(patched(2_000, [service, { ...service, group: 'serving.knative.dev' }])[0]).toEqual(service);
  });
  it('names the images of the current deployment', () => {
    const release = (current: boolean, image: string | null) => ({ current, toState: { services: [{ name: 'api', images: [{ image }] }], rollouts: [] } }) as unknown as Release;
    expect(imagesOf([release(false, 'old'), release(true, 'new:1')])).toEqual([{ workload: 'api', image: 'new:1' }]);
    expect(imagesOf([])).toBeNull();
    expect(imagesOf([release(true, null)])).toEqual([]);
  });
  it('links to addresses of the web alone', () => {
    expect(webAddress('https://git.example.com/a')).toBe('https://git.example.com/a');
    for (const text of ['javascript:alert(1)', ' https://x', 'data:text/html,x', '//x', '', null]) expect(webAddress(text)).toBeUndefined();
  });
});
