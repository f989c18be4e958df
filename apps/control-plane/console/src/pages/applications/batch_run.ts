// One action on many applications, one after the other, by the page. Pure but for what `act` does.
import { done, OutcomeError, outcomeOf, type Outcome } from '../../data/outcome';
import { failureOf, type Failure } from '../../data/request';

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

const SLOW = 5_000; // milliseconds

/** Tries the items in their order and tells each new state. Ends early when it is stopped, and with the session. A runtime
 * that was waited for in vain is not waited for again: nothing is sent to it, and the items of others come to their turn. */
export async function runBatch(items: readonly Item[], act: (item: Item) => Promise<string>, tell: (lines: readonly Line[]) => void, stopped: () => boolean): Promise<void> {
  const lines = linesOf(items);
  const silent = new Map<string, Outcome>(); // by runtime: what its last item came to
  for (const line of lines) {
    if (stopped()) return;
    const { runtime } = line.item;
    const begun = Date.now();
    let failed: Failure['kind'] | undefined;
    if (silent.has(runtime)) {
      line.outcome = silent.get(runtime)!;
      tell([...lines]);
      continue;
    }
    try {
      line.outcome = done(await act(line.item));
    } catch (error) {
      const failure = error instanceof OutcomeError ? null : failureOf('act', error);
      line.outcome = error instanceof OutcomeError ? error.outcome : outcomeOf(failure!);
      failed = error instanceof OutcomeError ? (error.outcome as { failure?: Failure['kind'] }).failure : failure!.kind;
    }
    // After "unknown" the runtime is looked at before anything is sent to it again.
    if (failed === 'unreachable' && line.outcome?.kind === 'failed' && Date.now() - begun > SLOW) silent.set(runtime, line.outcome);
    tell([...lines]);
    if (failed === 'signed-out') return;
  }
}
