// The rows of a diff: what is drawn of a comparison. Pure.
import type { Comparison } from './compare';

/** A line of one or both sides by its index (-1: none), or a fold of equal lines. */
export type Row =
  | { kind: '=' | '-' | '+' | '~'; left: number; right: number }
  | { kind: 'fold'; left: number; right: number; count: number };

const CONTEXT = 3;
const LEAST = 2 * CONTEXT + 4; // shorter runs of equal lines are not folded

/** Returns the rows. `isSplit` puts a removed line and the added one beside each other; `open` has the folds that are open, by their first line on the left. */
export function rowsOf({ runs }: Pick<Comparison, 'runs'>, isSplit: boolean, open: ReadonlySet<number>): Row[] {
  const rows: Row[] = [];
  let [l, r] = [0, 0];
  let removed = 0; // lines before the present run that wait for added ones
  const flush = (added: number) => {
    for (let at = 0; at < Math.max(removed, added); ++at) rows.push({ kind: '~', left: at < removed ? l - removed + at : -1, right: at < added ? r + at : -1 });
    removed = 0;
  };
  const all = runs ?? [];
  all.forEach(([kind, count], index) => {
    if (kind === '-') {
      if (isSplit) removed += count;
      else for (let at = 0; at < count; ++at) rows.push({ kind, left: l + at, right: -1 });
      l += count;
      return;
    }
    if (kind === '+') {
      if (isSplit) flush(count);
      else for (let at = 0; at < count; ++at) rows.push({ kind, left: -1, right: r + at });
      r += count;
      return;
    }
    flush(0);
    const [before, behind] = [index === 0 ? 0 : CONTEXT, index === all.length - 1 ? 0 : CONTEXT];
    const isFolded = count >= LEAST && !open.has(l);
    for (let at = 0; at < count; ++at) {
      if (isFolded && at === before) {
        const hidden = count - before - behind;
        rows.push({ kind: 'fold', left: l, right: r, count: hidden });
        at += hidden - 1;
      } else {
        rows.push({ kind: '=', left: l + at, right: r + at });
      }
    }
    l += count;
    r += count;
  });
  flush(0);
  return rows;
}

/** Returns how many lines were removed and added. */
export function countsOf({ runs }: Pick<Comparison, 'runs'>): { removed: number; added: number } {
  const sum = (wanted: string) => (runs ?? []).reduce((all, [kind, count]) => all + (kind === wanted ? count : 0), 0);
  return { removed: sum('-'), added: sum('+') };
}

/** Returns the rows at which changes begin. */
export function changesOf(rows: readonly Row[]): number[] {
  const isChange = (row: Row | undefined) => row !== undefined && row.kind !== '=' && row.kind !== 'fold';
  return rows.flatMap((row, at) => (isChange(row) && !isChange(rows[at - 1]) ? [at] : []));
}
