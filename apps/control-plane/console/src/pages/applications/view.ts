// The order of the table. It is computed after a reading and by filter and sort alone: live changes alter cells in place,
// and rows that would move, come or go wait until they are applied.
import { signal } from '@preact/signals';

import { serverNow } from '../../data/clock';
import { facet, filterFields, FILTER_KEYS, mayShow, ordered, TIME_KEYS, type Sort } from '../../store/applications';
import { matcher, parse, type Field, type Query } from '../../store/filter';
import { applications, offline, pulse } from '../../store/state';

export interface View {
  text: string;
  sort: Sort;
  query: Query;
  rows: readonly number[];
  matches: (row: number) => boolean;
}
export interface Waiting {
  changes: number; // rows that match no more, or that are gone
  added: number;
}

export const view = signal<View | null>(null);
/** The address of the list as it was shown last, for the way back to it. */
export const listAddress = signal('/applications');
export const waiting = signal<Waiting>({ changes: 0, added: 0 });

export function fields(me: string): Field<number>[] {
  return filterFields(applications, offline.peek(), me);
}

let counted: { query: Query; pulse: number; rows: number; me: string; matching: readonly number[]; counts: Map<string, { value: string; count: number }[]> } | null = null;

/** Computes the order again. */
export function arrange(text: string, sort: Sort, me: string): void {
  const query = parse(text, FILTER_KEYS, TIME_KEYS);
  const now = serverNow();
  const rows = ordered(applications, query, fields(me), sort, now);
  counted = { query, pulse: pulse.peek(), rows: applications.length, me, counts: new Map(), matching: rows };
  view.value = { text, sort, query, rows, matches: matcher(query, fields(me), now) };
  waiting.value = { changes: 0, added: 0 };
}

/** The place of an Application in the list as it was filtered and ordered last. */
export function neighbours(runtime: string, namespace: string, name: string): { at: number; count: number; before: number | undefined; next: number | undefined } {
  const rows = view.value?.rows ?? [];
  const row = applications.find(runtime, namespace, name);
  const at = row === undefined ? -1 : rows.indexOf(row);
  return { at, count: rows.length, before: at > 0 ? rows[at - 1] : undefined, next: rows[at + 1] };
}

/** Counts what a new order would change. */
export function countWaiting(me: string): void {
  const shown = view.peek();
  if (!shown) return;
  const matches = matcher(shown.query, fields(me), serverNow());
  const isShown = mayShow(applications, shown.query);
  const inside = new Set(shown.rows);
  let changes = 0;
  let added = 0;
  for (let row = 0; row < applications.length; ++row) {
    const fits = isShown(row) && matches(row);
    if (inside.has(row)) changes += fits ? 0 : 1;
    else added += fits ? 1 : 0;
  }
  const before = waiting.peek();
  if (before.changes !== changes || before.added !== added) waiting.value = { changes, added };
}

/** Returns whether a row of the view still belongs there. */
export function stillMatches(row: number): boolean {
  return !applications.isGone(row) && (view.peek()?.matches(row) ?? true);
}

/** Counts the values of a key. What was counted is kept until the query or the rows change. */
export function counts(key: string, query: Query, me: string): readonly { value: string; count: number }[] {
  const now = serverNow();
  if (counted?.query !== query || counted.pulse !== pulse.peek() || counted.rows !== applications.length || counted.me !== me) {
    const matches = matcher(query, fields(me), now);
    const isShown = mayShow(applications, query);
    counted = { query, pulse: pulse.peek(), rows: applications.length, me, counts: new Map(), matching: applications.byName().filter((row) => isShown(row) && matches(row)) };
  }
  let known = counted.counts.get(key);
  if (!known) counted.counts.set(key, (known = facet(applications, query, fields(me), key, now, counted.matching)));
  return known;
}
