// The filter grammar: query = { term }, term = ["-"] ( key ":" value { "," value } | text ). Pure.

export interface Term {
  negated: boolean;
  key: string; // '' for a text that matches the name
  values: string[];
  text: string; // as it was typed
}

export interface Query {
  terms: Term[];
  notes: string[]; // sentences about what was not understood; the rest applies
}

/** How values of a key are compared with those of a row. */
export type Kind = 'exact' | 'part' | 'prefix' | 'time' | 'list';

/** A key of the grammar: its kind, and how it reads a row. */
export interface Field<Row> {
  key: string;
  kind: Kind;
  read: (row: Row) => string | number | readonly string[];
}

/** Splits at blanks outside of quotes. */
export function words(text: string): string[] {
  return text.match(/(?:"[^"]*"?|[^\s"])+/g) ?? [];
}

function values(text: string): string[] {
  const parts = text.match(/(?:"[^"]*"?|[^,"])+/g) ?? [];
  return parts.map((part) => part.replaceAll('"', '').trim()).filter((part) => part !== '');
}

function term(word: string): Term {
  const negated = word.startsWith('-') && word.length > 1;
  const body = negated ? word.slice(1) : word;
  const split = /^([A-Za-z]+):(.*)$/s.exec(body);
  if (!split) return { negated, key: '', values: [body.replaceAll('"', '')], text: word };
  return { negated, key: split[1]!.toLowerCase(), values: values(split[2]!), text: word };
}

/** The number of single edits between two words; 3 stands for more. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; ++i) {
    const next = [i];
    for (let j = 1; j <= b.length; ++j) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return Math.min(row[b.length]!, 3);
}

function nearest(word: string, keys: readonly string[]): string {
  const best = keys.map((key) => ({ key, far: distance(word, key) })).sort((a, b) => a.far - b.far)[0];
  return best && best.far < 3 ? best.key : '';
}

/** Reads a query. Terms with an unknown key or a malformed value are left out and noted. */
export function parse(text: string, keys: readonly string[], timeKeys: readonly string[] = []): Query {
  const query: Query = { terms: [], notes: [] };
  for (const word of words(text)) {
    const read = term(word);
    if (read.key !== '' && !keys.includes(read.key)) {
      const guess = nearest(read.key, keys);
      query.notes.push(`No key \`${read.key}\`.${guess ? ` Did you mean \`${guess}\`?` : ''}`);
      continue;
    }
    if (timeKeys.includes(read.key)) {
      const wrong = read.values.find((value) => seconds(value) === null);
      if (wrong !== undefined) {
        query.notes.push(`\`${wrong}\` is no age. Write <1h or >30s.`);
        continue;
      }
    }
    if (read.values.length > 0) query.terms.push(read);
  }
  return query;
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

/** "<1h" as {below: true, seconds: 3600}; null when it is malformed. */
export function seconds(text: string): { below: boolean; seconds: number } | null {
  const split = /^([<>])(\d+)([smhdw])$/.exec(text);
  if (!split) return null;
  return { below: split[1] === '<', seconds: Number(split[2]) * UNITS[split[3]!]! };
}

type Test = (value: string) => boolean;

/** Compares with a pattern of "*", piece by piece: a regular expression of many stars would take for ever. */
function glob(pattern: string): Test {
  const parts = pattern.toLowerCase().split('*');
  const [first, last] = [parts[0]!, parts.at(-1)!];
  return (value) => {
    const text = value.toLowerCase();
    const end = text.length - last.length;
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    for (const part of parts.slice(1, -1)) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= end;
  };
}

function test(kind: Kind, value: string): Test {
  if (value.includes('*')) return glob(value);
  const wanted = value.toLowerCase();
  if (kind === 'part') return (text) => text.toLowerCase().includes(wanted);
  if (kind === 'prefix') return (text) => text.toLowerCase().startsWith(wanted);
  return (text) => text.length === wanted.length && text.toLowerCase() === wanted;
}

function predicate<Row>(term: Term, field: Field<Row>, now: number): (row: Row) => boolean {
  if (field.kind === 'time') {
    const limits = term.values.map((value) => seconds(value)!);
    return (row) => {
      const at = field.read(row) as number;
      if (!at) return false; // not known
      const age = (now - at) / 1000;
      return limits.some((limit) => (limit.below ? age < limit.seconds : age > limit.seconds));
    };
  }
  const tests = term.values.map((value) => test(field.kind, value));
  return (row) => {
    const value = field.read(row);
    if (typeof value === 'string') return tests.some((one) => one(value));
    return (value as readonly string[]).some((item) => tests.some((one) => one(item)));
  };
}

/** Returns whether a row matches all terms. `skip` leaves out the terms of a key, for the counts of its own facet. */
export function matcher<Row>(query: Query, fields: readonly Field<Row>[], now: number, skip = ''): (row: Row) => boolean {
  const parts: ((row: Row) => boolean)[] = [];
  for (const term of query.terms) {
    const field = fields.find((one) => one.key === (term.key || 'name'));
    if (!field || (skip !== '' && term.key === skip)) continue;
    const matches = predicate(term, term.key === '' ? { ...field, kind: 'part' } : field, now);
    parts.push(term.negated ? (row) => !matches(row) : matches);
  }
  return (row) => parts.every((part) => part(row));
}

function quoted(value: string): string {
  return /[\s,"]/.test(value) ? `"${value.replaceAll('"', '')}"` : value;
}

/** Returns whether a query has key:value, without "-". */
export function has(text: string, key: string, value: string): boolean {
  return words(text).map(term).some((one) => !one.negated && one.key === key &&
    one.values.some((item) => item.toLowerCase() === value.toLowerCase()));
}

/** Adds key:value to a query or takes it out. Values of one key share a term, since a comma is OR. */
export function toggled(text: string, key: string, value: string): string {
  const terms = words(text).map(term);
  const at = terms.findIndex((one) => !one.negated && one.key === key);
  const found = terms[at];
  if (!found) return [...terms.map((one) => one.text), `${key}:${quoted(value)}`].join(' ');
  const others = found.values.filter((item) => item.toLowerCase() !== value.toLowerCase());
  const kept = others.length < found.values.length ? others : [...found.values, value];
  const written = kept.length > 0 ? [`${key}:${kept.map(quoted).join(',')}`] : [];
  return [...terms.slice(0, at).map((one) => one.text), ...written, ...terms.slice(at + 1).map((one) => one.text)].join(' ');
}

/** Returns the query without one of its terms. */
export function without(text: string, dropped: string): string {
  return words(text).filter((word) => word !== dropped).join(' ');
}

/** Returns the term whose loss lets most rows through, for a query that nothing matches. */
export function narrowest<Row>(query: Query, fields: readonly Field<Row>[], rows: readonly Row[], now: number):
    { term: Term; matches: number } | null {
  let best: { term: Term; matches: number } | null = null;
  for (const term of query.terms) {
    const matches = matcher({ terms: query.terms.filter((one) => one !== term), notes: [] }, fields, now);
    const count = rows.reduce((sum, row) => sum + (matches(row) ? 1 : 0), 0);
    if (!best || count > best.matches) best = { term, matches: count };
  }
  return best && best.matches > 0 ? best : null;
}
