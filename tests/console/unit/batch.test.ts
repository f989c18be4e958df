import { describe, expect, it, vi } from 'vitest';

import { OutcomeError, type Outcome } from '../../../apps/control-plane/console/src/data/outcome';
import { again, countsText, linesOf, runBatch, type Item, type Line } from '../../../apps/control-plane/console/src/pages/applications/batch_run';

const items: Item[] = ['a', 'b', 'c', 'd'].map((name) => ({ runtime: 'prod', namespace: 'argocd', name }));
const fails = (kind: Outcome['kind'], failure = 'refused') => new OutcomeError({ kind, text: kind, requestId: '', failure } as Outcome);

async function run(act: (item: Item) => Promise<string>, stopped = () => false): Promise<readonly Line[]> {
  let last: readonly Line[] = linesOf(items);
  await runBatch(items, act, (lines) => (last = lines), stopped);
  return last;
}

describe('a batch', () => {
  it('goes on after what is not done, in the order of its items', async () => {
    const order: string[] = [];
    const lines = await run(async ({ name }) => {
      order.push(name);
      if (name === 'b') throw fails('refused');
      if (name === 'c') throw fails('unknown');
      return 'ok';
    });
    expect(order).toEqual(['a', 'b', 'c', 'd']);
    expect(countsText(lines)).toBe('2 done, 1 refused, 1 unknown.');
    expect(again(lines).map(({ name }) => name), 'a lost answer is looked at first').toEqual(['b']);
  });
  it('ends with the session: the rest is not tried', async () => {
    const lines = await run(async ({ name }) => {
      if (name === 'b') throw fails('refused', 'signed-out');
      return 'ok';
    });
    expect(countsText(lines)).toBe('1 done, 1 refused, 2 not tried.');
    expect(again(lines).map(({ name }) => name)).toEqual(['b', 'c', 'd']);
  });
  it('is stopped between two items', async () => {
    let count = 0;
    const lines = await run(async () => `${++count}`, () => count === 2);
    expect(countsText(lines)).toBe('2 done, 2 not tried.');
  });
  it('waits for a runtime that is away twice at most, so that others come to their turn', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const two: Item[] = ['lab', 'lab', 'lab', 'lab', 'prod'].map((runtime, index) => ({ runtime, namespace: 'argocd', name: `app-${index}` }));
    const tried: string[] = [];
    let last: readonly Line[] = [];
    await runBatch(two, async ({ runtime, name }) => {
      tried.push(name);
      if (runtime === 'prod') return 'ok';
      vi.setSystemTime(Date.now() + 60_000);
      throw fails(tried.length === 1 ? 'unknown' : 'failed', 'unreachable'); // the answer was lost, then nothing was sent
    }, (lines) => (last = lines), () => false);
    vi.useRealTimers();
    expect(tried).toEqual(['app-0', 'app-1', 'app-4']);
    expect(countsText(last)).toBe('1 done, 3 failed, 1 unknown.');
    expect(again(last).map(({ name }) => name)).toEqual(['app-1', 'app-2', 'app-3']);
  });
  it('tries a runtime that fails fast each time', async () => {
    expect(countsText(await run(async ({ name }) => { if (name === 'a') throw fails('failed', 'unreachable'); return 'ok'; }))).toBe('3 done, 1 failed.');
  });
  it('takes an exception of our own for a failure', async () => {
    expect(countsText(await run(async () => { throw new Error('odd'); }))).toBe('4 failed.');
  });
});
