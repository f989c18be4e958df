// One action on many applications, one after the other, by the page. Pure but for what `act` does.
import { done, OutcomeError, outcomeOf, type Outcome } from '../../data/outcome';
import { failureOf } from '../../data/request';

export interface Item {
  runtime: string;
  namespace: string;
  name: string;
}
export interface Line {
  item: Item;
  outcome: Outcome | null; // null: not tried
}

/** Returns the lines of items that nothing was tried with. */
export function linesOf(items: readonly Item[]): Line[] {
  return items.map((item) => ({ item, outcome: null }));
}

/** Those that may be tried again: nothing was changed with them, or nothing was tried. A lost answer is looked at first. */
export function again(lines: readonly Line[]): Item[] {
  return lines.filter(({ outcome }) => !outcome || outcome.kind === 'refused' || outcome.kind === 'failed').map(({ item }) => item);
}

export function counts(lines: readonly Line[]): Record<Outcome['kind'] | 'untried', number> {
  const found = { done: 0, refused: 0, failed: 0, unknown: 0, untried: 0 };
  for (const { outcome } of lines) ++found[outcome?.kind ?? 'untried'];
  return found;
}

/** "10 done, 1 refused, 2 not tried." */
export function countsText(lines: readonly Line[]): string {
  const { done: ok, refused, failed, unknown, untried } = counts(lines);
  const parts: [number, string][] = [[ok, 'done'], [refused, 'refused'], [failed, 'failed'], [unknown, 'unknown'], [untried, 'not tried']];
  return `${parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`).join(', ')}.`;
}

/** Tries the items in their order and tells each new state. Ends early when it is stopped, and with the session. */
export async function runBatch(items: readonly Item[], act: (item: Item) => Promise<string>, tell: (lines: readonly Line[]) => void, stopped: () => boolean): Promise<void> {
  const lines = linesOf(items);
  for (const line of lines) {
    if (stopped()) return;
    let isSignedOut = false;
    try {
      line.outcome = done(await act(line.item));
    } catch (error) {
      const failure = error instanceof OutcomeError ? null : failureOf('act', error);
      line.outcome = error instanceof OutcomeError ? error.outcome : outcomeOf(failure!);
      isSignedOut = (error instanceof OutcomeError ? (error.outcome as { failure?: string }).failure : failure!.kind) === 'signed-out';
    }
    tell([...lines]);
    if (isSignedOut) return;
  }
}
