import { describe, expect, it } from 'vitest';

import { ApplicationStore, comparable, facet, filterFields, FILTER_KEYS, inOrder, named, ordered, streamedRow, TIME_KEYS, type ApplicationRow } from '../../../apps/control-plane/console/src/store/applications';
import { parse } from '../../../apps/control-plane/console/src/store/filter';
import { RuntimeContacts, SILENT_AFTER } from '../../../apps/control-plane/console/src/store/runtimes';
import { state, word } from '../../../apps/control-plane/console/src/store/states';
import { scrollFor, windowOf } from '../../../apps/control-plane/console/src/ui/virtual';

const row = (name: string, more: Partial<ApplicationRow> = {}): ApplicationRow => ({
  uid: name, runtime: 'prod', namespace: 'argocd', name, health: 'Healthy', sync: 'Synced', phase: '', revision: '', message: '', author: '', cluster: '',
  project: 'default', repo: '', labels: [], autoSync: true, changedAt: 1, seenAt: 1, ...more,
});
const filled = (...rows: ApplicationRow[]) => {
  const store = new ApplicationStore();
  store.replace(rows);
  return store;
};
const query = (text: string) => parse(text, FILTER_KEYS, TIME_KEYS);

describe('store', () => {
  it('notifies the listeners of the changed row alone', () => {
    const store = filled(row('a'), row('b'));
    const heard: unknown[] = [];
    store.listen(0, (changed) => heard.push(changed));
    store.put({ uid: 'b', health: 'Degraded', seenAt: 2 });
    expect(heard).toEqual([]);
    store.put({ uid: 'a', health: 'Degraded', seenAt: 2 });
    store.put({ uid: 'a', health: 'Degraded', seenAt: 2 });
    expect(heard).toEqual([['health', 'seenAt']]);
  });
  it('takes what is sent later for newer, whatever the clocks of the servers say', () => {
    const store = filled(row('a', { seenAt: 10 }));
    store.put({ uid: 'a', health: 'Degraded', seenAt: 9 });
    expect([store.at(0).health, store.at(0).seenAt]).toEqual(['Degraded', 9]);
    store.replace([row('a', { seenAt: 8 })]);
    expect(store.at(0).health).toBe('Healthy');
    store.remove('a');
    store.put(row('a', { uid: 'again', seenAt: 7 }));
    expect([store.isGone(0), store.at(0).uid]).toEqual([false, 'again']);
  });
  it('keeps the number of a row that is gone, and takes it back', () => {
    const store = filled(row('a'), row('b'));
    store.remove('a');
    expect([store.size, store.length, store.isGone(0)]).toEqual([1, 2, true]);
    store.put(row('a', { seenAt: 3 }));
    expect([store.size, store.isGone(0)]).toEqual([2, false]);
    store.replace([row('b')]);
    expect(store.isGone(0)).toBe(true);
  });
  it('lets an object that was created again take the place of the one before', () => {
    const store = filled(row('a'), row('b'));
    const { row: place, added } = store.put({ ...row('a', { health: 'Progressing', seenAt: 5 }), uid: 'a-again' });
    expect([place, added, store.size, store.at(0).uid]).toEqual([0, false, 2, 'a-again']);
    store.remove('a'); // of the one before
    expect(store.isGone(0)).toBe(false);
    expect(store.find('prod', 'argocd', 'a')).toBe(0);
  });
  it('keeps an object whose older namesake is heard of late', () => {
    const store = filled(row('a', { uid: 'new', seenAt: 10 }));
    store.put(row('a', { uid: 'old', seenAt: 5 }));
    store.remove('old');
    expect(store.isGone(0)).toBe(false);
    store.replace([row('a', { uid: 'new', seenAt: 11 })]);
    expect([store.isGone(0), store.at(0).uid, store.rowOf('old')]).toEqual([false, 'new', undefined]);
  });
  it('forgets listeners', () => {
    const store = filled(row('a'));
    const stop = store.listen(0, () => {});
    stop();
    expect(store.listening).toBe(0);
  });
  it('reads rows of the stream', () => {
    expect(streamedRow({ topic: 'index', uid: 'a', health: 'OUT', sync: 'OUT_OF_SYNC', phase: '', autoSync: true, seenAt: '2026-01-01T00:00:00Z', revision: 7 })).toEqual({
      uid: 'a', health: 'Out', sync: 'OutOfSync', phase: '', autoSync: true, seenAt: Date.UTC(2026, 0, 1), revision: '' });
    const store = filled(row('a', { labels: ['x=1'], repo: 'r' }));
    store.put(streamedRow({ uid: 'a', health: 'Degraded' }));
    expect(store.at(0)).toMatchObject({ health: 'Degraded', labels: ['x=1'], repo: 'r' });
  });
  it('finds a row of the stream by its labels and its repository', () => {
    const store = filled(row('a', { labels: ['team=pay'] }));
    const found = (text: string) => ordered(store, query(text), filterFields(store, new Set(), ''), { key: 'name', down: false }, 0);
    store.put(streamedRow({ ...row('b'), labels: ['team=pay', 'tier=web'], repo: 'https://git.example/b.git', seenAt: 2 }));
    expect([found('label:team=pay'), found('repo:b.git')]).toEqual([[0, 1], [1]]);
    const heard: unknown[] = [];
    store.listen(0, (changed) => heard.push(changed));
    store.put(streamedRow({ uid: 'a', labels: ['team=pay'] })); // the same
    store.put(streamedRow({ uid: 'a', labels: null })); // not known
    store.put(streamedRow({ uid: 'a', labels: ['team=shop'] }));
    expect([heard, found('label:team=pay'), found('label:team=shop')]).toEqual([[['labels']], [1], [0]]);
  });
  it('orders by severity, then by name', () => {
    const store = filled(row('b'), row('a'), row('c', { health: 'Degraded' }), row('d', { health: 'Progressing' }));
    const fields = filterFields(store, new Set(), '');
    const names = (sort: Parameters<typeof ordered>[3]) => ordered(store, query(''), fields, sort, 0).map((one) => store.at(one).name);
    expect(names({ key: 'health', down: false })).toEqual(['c', 'd', 'a', 'b']);
    expect(names({ key: 'name', down: true })).toEqual(['d', 'c', 'b', 'a']);
  });
  it('keeps the order of names until a row comes or a name changes', () => {
    const store = filled(row('app-10'), row('app-2'));
    const names = () => store.byName().map((one) => store.at(one).name);
    expect(names()).toEqual(['app-2', 'app-10']);
    const before = store.byName();
    store.put({ uid: 'app-2', health: 'Degraded', seenAt: 2 });
    expect(store.byName()).toBe(before);
    store.put(row('app-1'));
    expect(names()).toEqual(['app-1', 'app-2', 'app-10']);
    store.put({ uid: 'app-1', name: 'app-3', seenAt: 3 });
    expect(names()).toEqual(['app-2', 'app-3', 'app-10']);
  });
  it('counts facets without the terms of their own key', () => {
    const store = filled(row('a', { health: 'Degraded' }), row('b'), row('c', { runtime: 'lab' }));
    const fields = filterFields(store, new Set(['lab']), '');
    expect(facet(store, query('health:Degraded runtime:prod'), fields, 'health', 0)).toEqual([{ value: 'Degraded', count: 1 }, { value: 'Healthy', count: 1 }]);
    // The rows that match already give the same counts.
    for (const [text, key] of [['runtime:prod', 'health'], ['health:Degraded runtime:prod', 'health'], ['', 'runtime']] as const) {
      const matching = ordered(store, query(text), fields, { key: 'name', down: false }, 0);
      expect(facet(store, query(text), fields, key, 0, matching)).toEqual(facet(store, query(text), fields, key, 0));
    }
    expect(ordered(store, query('is:offline'), fields, { key: 'name', down: false }, 0)).toEqual([2]);
    expect(ordered(store, query('is:failing'), fields, { key: 'name', down: false }, 0)).toEqual([0]);
  });
  it('finds a cluster by its address and by what is shown of it', () => {
    const store = filled(row('a', { cluster: 'https://kubernetes.default.svc' }), row('b', { cluster: 'https://10.0.0.1:6443' }), row('c'));
    const fields = filterFields(store, new Set(), '');
    const found = (text: string) => ordered(store, query(text), fields, { key: 'name', down: false }, 0);
    expect([found('cluster:in-cluster'), found('cluster:https://kubernetes.default.svc'), found('cluster:10.0.0.1:6443'), found('-cluster:in-cluster')]).toEqual([[0], [0], [1], [1, 2]]);
    expect(facet(store, query(''), fields, 'cluster', 0)).toEqual([{ value: 'https://kubernetes.default.svc', count: 1 }, { value: 'https://10.0.0.1:6443', count: 1 }]);
  });
  it('finds the name that was typed before those that have it in them', () => {
    const store = filled(...Array.from({ length: 300 }, (_, index) => row(`shop-web-${index}`)), row('web-2'), row('web'), row('Web', { uid: 'other', runtime: 'lab' }));
    const names = (text: string, most: number) => named(store, text, most).map((one) => store.at(one).name);
    expect(names('web', 5)).toEqual(['web', 'Web', 'web-2', 'shop-web-0', 'shop-web-1']);
    store.remove('web');
    expect(names('web', 2)).toEqual(['Web', 'web-2']);
    expect(names('nothing', 5)).toEqual([]);
  });
  it('filters 10,000 rows within a key press', () => {
    const store = filled(...Array.from({ length: 10_000 }, (_, index) => row(`app-${index}`, { health: index % 9 ? 'Healthy' : 'Degraded' })));
    const fields = filterFields(store, new Set(), '');
    expect(ordered(store, query('health:degraded app-1'), fields, { key: 'health', down: false }, 0).length).toBeGreaterThan(100);
  });
});

describe('silent runtimes', () => {
  const read = (seenAt: number, available = true) => [{ name: 'prod', seenAt, available }];
  it('are those that the server calls so', () => {
    const contacts = new RuntimeContacts();
    contacts.read([...read(1_000, false), { name: 'lab', seenAt: 0, available: false }], 5_000);
    expect([...contacts.silent(5_000, false)]).toEqual([['prod', 1_000]]);
    contacts.hear('prod', 2_000, 6_000);
    expect(contacts.silent(6_000, true).size).toBe(0);
  });
  it('are noticed between readings while the stream lives, whatever the clocks say', () => {
    const contacts = new RuntimeContacts();
    contacts.read(read(1_000_000_000), 5_000); // the page's clock is far behind
    expect(contacts.silent(5_000 + SILENT_AFTER, true).size).toBe(0);
    expect([...contacts.silent(5_001 + SILENT_AFTER, true)]).toEqual([['prod', 1_000_000_000]]);
    // Without the stream it may be the page that hears nothing.
    expect(contacts.silent(5_001 + SILENT_AFTER, false).size).toBe(0);
  });
  it('are none that the server calls available since its clock was set back', () => {
    const contacts = new RuntimeContacts();
    contacts.read(read(9_000_000), 1);
    contacts.read(read(5_400_000), 1 + SILENT_AFTER);
    expect(contacts.silent(2 + SILENT_AFTER, true).size).toBe(0);
    contacts.read(read(5_400_000, false), 2 + SILENT_AFTER);
    expect(contacts.silent(2 + 2 * SILENT_AFTER, true).size).toBe(1);
  });
  it('are forgotten when they are removed, and an older reading changes nothing', () => {
    const contacts = new RuntimeContacts();
    contacts.hear('prod', 9_000, 1);
    contacts.read(read(8_000, false), 2);
    expect(contacts.silent(3, true).size).toBe(0);
    contacts.read([{ name: 'other', seenAt: 1, available: false }], 4);
    expect([...contacts.silent(5, true).keys()]).toEqual(['other']);
  });
});

describe('states', () => {
  it('spells states as their projects do', () => {
    expect(['OUT_OF_SYNC', 'OutOfSync', 'HEALTHY', '', null, 'Paused'].map(word)).toEqual(['OutOfSync', 'OutOfSync', 'Healthy', 'Unknown', 'Unknown', 'Paused']);
  });
  it('never shows what it does not know as healthy', () => {
    for (const text of ['', 'Unknown', 'Whatever', null, undefined]) expect(state(text)).toMatchObject({ tone: 'mute', shape: 'question' });
  });
});

describe('virtual rows', () => {
  it('draws what is in sight and eight more', () => {
    expect(windowOf(0, 360, 36, 10_000)).toEqual([0, 18]);
    expect(windowOf(36_000, 360, 36, 10_000)).toEqual([992, 1018]);
    expect(windowOf(500, 360, 36, 3)).toEqual([3, 3]);
    expect(windowOf(0, 360, 36, 0)).toEqual([0, 0]);
  });
  it('scrolls only as far as it has to', () => {
    expect(scrollFor(5, 0, 400, 36, 32)).toBeNull();
    expect(scrollFor(0, 100, 400, 36, 32)).toBe(0);
    expect(scrollFor(20, 0, 400, 36, 32)).toBe(20 * 36 + 36 - 400 + 32);
  });
});

describe('names in order', () => {
  const collator = new Intl.Collator('en', { numeric: true });
  it('are those of a collator, without one', () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % below;
    const letters = 'abz019.-';
    const names = [...new Set(Array.from({ length: 3_000 }, () => Array.from({ length: 1 + random(9) }, () => letters[random(letters.length)]).join('')))].filter((name) => !/0\d/.test(name));
    expect(names.every((name) => comparable(name) !== null)).toBe(true);
    expect(inOrder(names)).toEqual([...names].sort(collator.compare));
    expect(inOrder(['app-10', 'app-9', 'app', 'app-9.b', 'app-9-b'])).toEqual(['app', 'app-9', 'app-9-b', 'app-9.b', 'app-10']);
  });
  it('need the collator for other letters and for numbers without end', () => {
    for (const name of ['Äpfel', 'a_b', 'A', `a${'1'.repeat(41)}`]) expect(comparable(name)).toBeNull();
    expect(inOrder(['b', 'Ä', 'a'])).toEqual(['a', 'Ä', 'b']);
  });
});

describe('words of states', () => {
  it('are one text each, and do not grow without end', () => {
    expect(word('OUT_OF_SYNC')).toBe('OutOfSync');
    for (let number = 0; number < 3_000; ++number) expect(word(`STATE_${number}`)).toBe(`State${number}`);
    expect(word('OUT_OF_SYNC')).toBe('OutOfSync');
  });
});
