import { beforeAll, describe, expect, it, vi } from 'vitest';

import type * as Columns from '../../../apps/control-plane/console/src/pages/applications/columns';
import type * as Cards from '../../../apps/control-plane/console/src/pages/applications/cards';
import { addressOf, readViews, withStart, withView } from '../../../apps/control-plane/console/src/pages/applications/saved';
import { cornerOf, tileAt, tileBeside, tileLayout } from '../../../apps/control-plane/console/src/pages/applications/tile_layout';

describe('saved views', () => {
  it('keeps names, queries and one start page', () => {
    const views = withStart(withView(withView([], 'b', 'q=x&as=tiles'), 'a', ''), 'b');
    expect(views.map((one) => [one.name, addressOf(one), one.isStart])).toEqual([['a', '/applications', false], ['b', '/applications?q=x&as=tiles', true]]);
    expect(withStart(views, 'a').filter((one) => one.isStart).map((one) => one.name)).toEqual(['a']);
    expect(withStart(views, 'b').some((one) => one.isStart)).toBe(false);
    expect(withView(views, 'b', 'q=y').find((one) => one.name === 'b')).toEqual({ name: 'b', query: 'q=y', isStart: true });
  });
  it('drops none for another one when there are as many as are kept', () => {
    let views = withView([], 'z', 'q=z');
    for (let number = 1; number < 50; ++number) views = withView(views, `view-${number}`, '');
    const more = withView(views, 'a', 'q=a');
    expect([more.length, more.some(({ name }) => name === 'z'), more.some(({ name }) => name === 'a')]).toEqual([50, true, false]);
    expect(withView(views, 'z', 'q=new').find(({ name }) => name === 'z')!.query).toBe('q=new');
  });
  it('reads back what was kept, and nothing else', () => {
    const views = withStart(withView([], 'a', 'q=x'), 'a');
    expect(readViews(JSON.stringify(views))).toEqual(views);
    for (const text of [null, '', '{', '{}', '7', '[null,1,{"name":""},{"name":"x"},{"query":"y"}]']) expect(readViews(text)).toEqual([]);
    expect(readViews('[{"name":"a","query":"","isStart":true},{"name":"b","query":"","isStart":true}]').filter((one) => one.isStart)).toHaveLength(1);
  });
});

describe('the list', () => {
  it('shows rows that are gone to those who ask for them alone', async () => {
    const { applications } = await import('../../../apps/control-plane/console/src/store/state');
    const { arrange, countWaiting, view, waiting } = await import('../../../apps/control-plane/console/src/pages/applications/view');
    for (const name of ['a', 'b']) applications.put({ uid: name, runtime: 'prod', namespace: 'argocd', name, health: 'Healthy' });
    applications.remove('a');
    const shown = (text: string) => {
      arrange(text, { key: 'name', down: false }, '');
      countWaiting('');
      expect(waiting.value).toEqual({ changes: 0, added: 0 });
      return view.value!.rows;
    };
    expect([shown(''), shown('is:gone'), shown('is:Gone,failing'), shown('-is:gone'), shown('is:gone b')]).toEqual([[1], [0], [0], [1], []]);
  });
});

describe('keys', () => {
  it('are signs, too, where a keyboard has them behind AltGr or Option', async () => {
    vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} });
    const { pressed } = await import('../../../apps/control-plane/console/src/shell/keys');
    const press = (key: string, more = {}) => pressed({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });
    expect([press('['), press('[', { altKey: true }), press(']', { altKey: true, ctrlKey: true })]).toEqual(['[', '[', ']']);
    expect([press('j', { altKey: true }), press('5', { altKey: true }), press('ArrowLeft', { altKey: true }), press('k', { ctrlKey: true })]).toEqual(['', '', '', 'Ctrl K']);
  });
});

describe('columns', () => {
  let columns: typeof Columns;
  let cards: typeof Cards;
  beforeAll(async () => {
    vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} });
    columns = await import('../../../apps/control-plane/console/src/pages/applications/columns');
    cards = await import('../../../apps/control-plane/console/src/pages/applications/cards');
  });
  const keys = (text?: string) => columns.columnsOf(text).map((column) => column.key);

  it('are the usual ones unless the address says otherwise', () => {
    expect(keys()).toContain('message');
    expect(keys()).not.toContain('labels');
    expect(keys('labels,health,no-such')).toEqual(['name', 'health', 'labels']);
    expect(keys('no-such')).toEqual(keys());
  });
  it('are put in and taken out, and the usual ones need no text', () => {
    const added = columns.toggledColumn(columns.columnsOf(undefined), 'project');
    expect(keys(added)).toContain('project');
    expect(columns.toggledColumn(columns.columnsOf(added), 'project')).toBe('');
  });
  it('make a row as wide as they need', () => {
    expect(columns.leastWidth(columns.columnsOf('health'))).toBe(32 + 150 + 12 + 116);
  });
  it('a board has the worst first and keeps the order of rows', () => {
    const healths = ['Healthy', 'Degraded', 'Healthy', 'Missing', 'Degraded'];
    expect(cards.board([4, 0, 1, 2, 3], (row) => healths[row]!)).toEqual([
      { word: 'Degraded', rows: [4, 1] }, { word: 'Missing', rows: [3] }, { word: 'Healthy', rows: [0, 2] }]);
  });
});

describe('tiles', () => {
  it('fit ten thousand into one screen', () => {
    const layout = tileLayout(['a', 'b', 'c'], [7_000, 2_000, 1_000], 1_224, 620);
    expect(layout.height).toBeLessThanOrEqual(620);
    expect(layout.pitch).toBeGreaterThanOrEqual(7);
  });
  it('are large when there are few, and never too small', () => {
    expect(tileLayout(['a'], [10], 1_200, 600).pitch).toBe(40);
    expect(tileLayout(['a'], [100_000], 300, 300).pitch).toBe(6);
  });
  it('are found where they are drawn', () => {
    const layout = tileLayout(['a', 'b'], [50, 7], 300, 200);
    for (let tile = 0; tile < 57; ++tile) {
      const { x, y } = cornerOf(layout, tile);
      expect(tileAt(layout, x + 1, y + 1)).toBe(tile);
    }
    expect([tileAt(layout, -1, 30), tileAt(layout, 10_000, 30), tileAt(layout, 1, 1), tileAt(layout, 1, 10_000)]).toEqual([-1, -1, -1, -1]);
  });
  it('are walked up and down across groups', () => {
    const layout = { pitch: 10, perLine: 5, height: 0, groups: [{ name: 'a', from: 0, count: 7, top: 0 }, { name: 'b', from: 7, count: 2, top: 50 }] };
    expect([tileBeside(layout, 0, 1), tileBeside(layout, 4, 1), tileBeside(layout, 5, 1), tileBeside(layout, 8, 1)]).toEqual([5, 6, 7, 8]);
    expect([tileBeside(layout, 7, -1), tileBeside(layout, 6, -1), tileBeside(layout, 1, -1)]).toEqual([5, 1, 1]);
  });
});
