// All Applications as columns in plain arrays. A page listens to the rows that it shows, nothing else is notified.
import { matcher, type Field, type Query } from './filter';
import { state, word } from './states';

/** A row as GraphQL and the stream send it. */
export interface ApplicationRow {
  uid: string;
  runtime: string;
  namespace: string;
  name: string;
  health: string;
  sync: string;
  phase: string; // of the last operation; '' without one
  revision: string;
  message: string;
  author: string;
  cluster: string;
  project: string;
  repo: string;
  labels: readonly string[]; // "key=value"
  autoSync: boolean;
  changedAt: number; // milliseconds; 0: not known
  seenAt: number;
}

const EMPTY: ApplicationRow = {
  uid: '', runtime: '', namespace: '', name: '', health: '', sync: '', phase: '', revision: '', message: '', author: '',
  cluster: '', project: '', repo: '', labels: [], autoSync: false, changedAt: 0, seenAt: 0,
};
type Key = keyof ApplicationRow;
const KEYS = Object.keys(EMPTY) as Key[];

const nameKey = (runtime: string, namespace: string, name: string): string => `${runtime}\n${namespace}\n${name}`;
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
/** The uid of a row. An object that the cluster does not have yet has none, so its names stand for it. */
export const uidOf = (uid: unknown, runtime: unknown, namespace: unknown, name: unknown): string => text(uid) || `${text(runtime)}/${text(namespace)}/${text(name)}`;

/** Reads times as RFC 3339 texts and as milliseconds. */
export function time(value: unknown): number {
  if (typeof value === 'number') return value;
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? 0 : at;
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one, index) => one === b[index]);
}

/** Reads a row of the stream's patch. Members that it lacks keep their value. */
export function streamedRow(sent: Record<string, unknown>): Partial<ApplicationRow> & { uid: string } {
  const row: Record<string, unknown> = { uid: uidOf(sent.uid, sent.runtime, sent.namespace, sent.name) };
  for (const key of KEYS) {
    if (!(key in sent) || key === 'uid' || (key === 'labels' && !Array.isArray(sent.labels))) continue;
    if (key === 'labels') row[key] = (sent.labels as unknown[]).map(text);
    else if (key === 'autoSync') row[key] = sent[key] === true;
    else if (key === 'changedAt' || key === 'seenAt') row[key] = time(sent[key]);
    else if (key === 'health' || key === 'sync') row[key] = word(text(sent[key]));
    else if (key === 'phase') row[key] = sent[key] ? word(text(sent[key])) : '';
    else row[key] = text(sent[key]);
  }
  return row as Partial<ApplicationRow> & { uid: string };
}

export type Listener = (changed: readonly Key[]) => void;

export class ApplicationStore {
  readonly columns = Object.fromEntries(KEYS.map((key) => [key, []])) as unknown as { [K in Key]: ApplicationRow[K][] };
  readonly #rows = new Map<string, number>(); // uid -> row
  readonly #names = new Map<string, number>(); // runtime, namespace and name -> row
  readonly #gone = new Set<number>();
  readonly #listeners = new Map<number, Set<Listener>>();
  #byName: readonly number[] = [];

  get length(): number {
    return this.columns.uid.length;
  }
  /** Rows that exist. */
  get size(): number {
    return this.length - this.#gone.size;
  }
  rowOf(uid: string): number | undefined {
    return this.#rows.get(uid);
  }
  isGone(row: number): boolean {
    return this.#gone.has(row);
  }
  at(row: number): ApplicationRow {
    const c = this.columns;
    // Written out: all rows have one shape then, which a loop over names does not give.
    return {
      uid: c.uid[row]!, runtime: c.runtime[row]!, namespace: c.namespace[row]!, name: c.name[row]!, health: c.health[row]!, sync: c.sync[row]!, phase: c.phase[row]!, revision: c.revision[row]!,
      message: c.message[row]!, author: c.author[row]!, cluster: c.cluster[row]!, project: c.project[row]!, repo: c.repo[row]!, labels: c.labels[row]!, autoSync: c.autoSync[row]!,
      changedAt: c.changedAt[row]!, seenAt: c.seenAt[row]!,
    };
  }
  find(runtime: string, namespace: string, name: string): number | undefined {
    const row = this.#names.get(nameKey(runtime, namespace, name));
    return row === undefined || this.#gone.has(row) ? undefined : row;
  }

  /** Returns the row of a uid, or the one whose place it takes: an object with the same names, which was created again. */
  #placeOf({ uid, runtime, namespace, name }: Partial<ApplicationRow> & { uid: string }): number | undefined {
    const known = this.#rows.get(uid);
    if (known !== undefined || runtime === undefined || namespace === undefined || name === undefined) return known;
    return this.#names.get(nameKey(runtime, namespace, name));
  }

  /** All rows in the order of their names, also those that are gone. The order is kept until rows or names change. */
  byName(): readonly number[] {
    if (this.#byName.length !== this.length) {
      const places = new Map(inOrder([...new Set(this.columns.name)]).map((name, place) => [name, place]));
      this.#byName = grouped(this.columns.name.keys(), (row) => places.get(this.columns.name[row]!)!);
    }
    return this.#byName;
  }

  /** Adds a row or changes its cells, and notifies the listeners of the row. What is sent later is newer, whatever its time says: the clocks of
   * two replicas differ. Only an older namesake that is heard of late is dropped. Returns the row, and whether it is new. */
  put(sent: Partial<ApplicationRow> & { uid: string }): { row: number; added: boolean; changed: Key[] } {
    let row = this.#placeOf(sent);
    const added = row === undefined;
    if (row === undefined) {
      row = this.length;
      this.#rows.set(sent.uid, row);
      for (const key of KEYS) (this.columns[key] as unknown[]).push(sent[key] ?? EMPTY[key]);
      this.#names.set(nameKey(this.columns.runtime[row]!, this.columns.namespace[row]!, this.columns.name[row]!), row);
      return { row, added, changed: [] };
    } else if (sent.uid !== this.columns.uid[row] && !this.#gone.has(row) && sent.seenAt && sent.seenAt < this.columns.seenAt[row]!) {
      return { row, added: false, changed: [] };
    }
    const before = this.columns.uid[row]!;
    if (before !== sent.uid) {
      this.#rows.delete(before);
      this.#rows.set(sent.uid, row);
    }
    const changed: Key[] = [];
    for (const key of KEYS) {
      const value = sent[key];
      const column = this.columns[key] as unknown[];
      if (value === undefined || value === column[row] || (key === 'labels' && isSame(value as string[], column[row] as string[]))) continue;
      column[row] = value;
      changed.push(key);
    }
    if (changed.includes('name')) this.#byName = [];
    if (this.#gone.delete(row)) changed.push('uid');
    if (changed.length > 0) this.#notify(row, changed);
    return { row, added, changed };
  }

  /** Marks a row as gone. It keeps its number, so that nothing on the page moves. */
  remove(uid: string): number | undefined {
    const row = this.#rows.get(uid);
    if (row === undefined || this.#gone.has(row)) return undefined;
    this.#gone.add(row);
    this.#notify(row, ['uid']);
    return row;
  }

  /** Takes a whole reading: what it does not contain is gone. */
  replace(all: readonly ApplicationRow[]): void {
    const read = new Set(all.map((one) => this.put(one).row));
    for (const [uid, row] of this.#rows) if (!read.has(row)) this.remove(uid);
  }

  listen(row: number, listener: Listener): () => void {
    let all = this.#listeners.get(row);
    if (!all) this.#listeners.set(row, (all = new Set()));
    all.add(listener);
    return () => {
      all.delete(listener);
      if (all.size === 0) this.#listeners.delete(row);
    };
  }
  get listening(): number {
    return this.#listeners.size;
  }

  #notify(row: number, changed: readonly Key[]): void {
    for (const listener of this.#listeners.get(row) ?? []) listener(changed);
  }
}

/** "https://kubernetes.default.svc" is the cluster that the runtime itself is in. */
export function clusterName(cluster: string): string {
  return cluster === 'https://kubernetes.default.svc' ? 'in-cluster' : cluster.replace(/^https?:\/\//, '');
}

/** The keys of the filter over the rows of a store. `offline` are the runtimes that are silent. A new key goes here. */
export function filterFields(store: ApplicationStore, offline: { has(runtime: string): boolean }, me: string): Field<number>[] {
  const c = store.columns;
  const is = (row: number): string[] => {
    const words: string[] = [];
    const bad = c.health[row] === 'Degraded' || c.phase[row] === 'Failed' || c.phase[row] === 'Error';
    if (bad) words.push('failing');
    if (c.sync[row] === 'OutOfSync') words.push('drifted');
    if (offline.has(c.runtime[row]!)) words.push('offline');
    if (store.isGone(row)) words.push('gone');
    return words;
  };
  return [
    { key: 'name', kind: 'part', read: (row) => c.name[row]! },
    { key: 'project', kind: 'exact', read: (row) => c.project[row]! },
    { key: 'runtime', kind: 'exact', read: (row) => c.runtime[row]! },
    { key: 'cluster', kind: 'exact', read: (row) => [c.cluster[row]!, clusterName(c.cluster[row]!)] }, // as it is, and as it is shown
    { key: 'namespace', kind: 'exact', read: (row) => c.namespace[row]! },
    { key: 'health', kind: 'exact', read: (row) => c.health[row]! },
    { key: 'sync', kind: 'exact', read: (row) => c.sync[row]! },
    { key: 'op', kind: 'exact', read: (row) => c.phase[row]! },
    { key: 'auto', kind: 'exact', read: (row) => (c.autoSync[row] ? 'on' : 'off') },
    { key: 'repo', kind: 'part', read: (row) => c.repo[row]! },
    { key: 'rev', kind: 'prefix', read: (row) => c.revision[row]! },
    { key: 'by', kind: 'part', read: (row) => (me !== '' && c.author[row] === me ? [c.author[row]!, 'me'] : c.author[row]!) },
    { key: 'message', kind: 'part', read: (row) => c.message[row]! },
    { key: 'label', kind: 'exact', read: (row) => c.labels[row]! },
    { key: 'changed', kind: 'time', read: (row) => c.changedAt[row]! },
    { key: 'age', kind: 'time', read: (row) => c.seenAt[row]! },
    { key: 'is', kind: 'exact', read: is },
  ];
}
export const FILTER_KEYS = filterFields(new ApplicationStore(), new Set(), '').map((field) => field.key);
export const TIME_KEYS = ['changed', 'age'];

/** Returns whether a row may be shown: one that is gone only to a query that asks for such rows. */
export function mayShow(store: ApplicationStore, query: Query): (row: number) => boolean {
  const wantsGone = query.terms.some(({ key, negated, values }) => key === 'is' && !negated && values.some((value) => value.toLowerCase() === 'gone'));
  return (row) => wantsGone || !store.isGone(row);
}

export interface Sort {
  key: Key;
  down: boolean;
}

const COLLATOR = new Intl.Collator('en', { numeric: true });
const BY_SEVERITY: readonly Key[] = ['health', 'sync', 'phase'];

/** Returns the rows that match, in order. Equal ones are in the order of their names. */
export function ordered(store: ApplicationStore, query: Query, fields: readonly Field<number>[], sort: Sort, now: number): number[] {
  const matches = matcher(query, fields, now);
  const isShown = mayShow(store, query);
  const rows = store.byName().filter((row) => isShown(row) && matches(row));
  const column = store.columns[sort.key] as readonly unknown[];
  const sign = sort.down ? -1 : 1;
  if (sort.key === 'name') return sort.down ? rows.reverse() : rows;
  const rank = ranks(sort.key, column);
  return grouped(rows, (row) => sign * rank(column[row]));
}

/** Orders rows by a number. Equal ones stay in the order in which they come. Most columns have few values, so this sorts
 * those alone: it runs at each key in the filter. */
function grouped(rows: Iterable<number>, place: (row: number) => number): number[] {
  const groups = new Map<number, number[]>();
  for (const row of rows) {
    const at = place(row);
    const group = groups.get(at);
    if (group) group.push(row);
    else groups.set(at, [row]);
  }
  return [...groups.keys()].sort((a, b) => a - b).flatMap((at) => groups.get(at)!);
}

const PLAIN_NAME = /^[a-z0-9.-]*$/;
const LONGEST_NUMBER = 40; // digits
/** A text that compares by "<" as COLLATOR compares the names of Kubernetes; null for others. A number is its length and itself. */
export function comparable(name: string): string | null {
  if (!PLAIN_NAME.test(name)) return null;
  let isTooLong = false;
  const key = name.replace(/\d+/g, (digits) => {
    const number = digits.replace(/^0+(?=\d)/, '');
    isTooLong ||= number.length > LONGEST_NUMBER;
    return String.fromCharCode(0x30 + number.length) + number;
  });
  return isTooLong ? null : key;
}

/** Orders texts as people do: app-9 before app-10. Names of Kubernetes need no collator, which takes three times as long. */
export function inOrder(texts: readonly string[]): string[] {
  const keyed = texts.map((text) => ({ text, key: comparable(text) }));
  if (keyed.some(({ key }) => key === null)) return [...texts].sort(COLLATOR.compare);
  return keyed.sort((a, b) => (a.key! < b.key! ? -1 : a.key! > b.key! ? 1 : 0)).map(({ text }) => text);
}

/** Returns the place of a value in its column. */
function ranks(key: Key, column: readonly unknown[]): (value: unknown) => number {
  if (BY_SEVERITY.includes(key)) {
    const known = new Map([...new Set(column as string[])].map((text) => [text, text === '' ? 1 : -state(text).severity]));
    return (value) => known.get(value as string)!;
  }
  if (typeof EMPTY[key] === 'number') return (value) => -(value as number);
  const places = new Map(inOrder([...new Set(column.map(String))]).map((text, place) => [text, place]));
  return (value) => places.get(String(value))!;
}

/** Returns at most `most` rows whose names have a text of small letters in them: first the name itself, then those that begin
 * with it. */
export function named(store: ApplicationStore, text: string, most: number): number[] {
  const groups: [number[], number[], number[]] = [[], [], []];
  for (const row of store.byName()) {
    const name = store.columns.name[row]!.toLowerCase();
    const at = name.indexOf(text);
    if (at >= 0 && !store.isGone(row)) groups[name === text ? 0 : at === 0 ? 1 : 2].push(row);
  }
  return groups.flat().slice(0, most);
}

/** Counts the values of a column among the rows that match the terms of all other keys. `matching` are those that match
 * the whole query, which saves another search for a key without terms. */
export function facet(store: ApplicationStore, query: Query, fields: readonly Field<number>[], key: string, now: number, matching?: readonly number[]):
    { value: string; count: number }[] {
  const field = fields.find((one) => one.key === key)!;
  const counts = new Map<string, number>();
  const isOwn = query.terms.some((term) => term.key === key);
  const matches = isOwn || !matching ? matcher(query, fields, now, key) : () => true;
  const isShown = mayShow(store, query);
  for (const row of isOwn || !matching ? store.byName() : matching) {
    if (!isShown(row) || !matches(row)) continue;
    const read = field.read(row) as string | readonly string[];
    const value = typeof read === 'string' ? read : read[0] ?? '';
    if (value !== '') counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].map(([value, count]) => ({ value, count }));
}
