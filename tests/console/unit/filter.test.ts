import { describe, expect, it } from 'vitest';

import { has, matcher, narrowest, parse, seconds, toggled, without, words, type Field } from '../../../apps/control-plane/console/src/store/filter';

interface Row {
  name: string;
  health: string;
  labels: string[];
  changedAt: number;
}
const KEYS = ['name', 'health', 'label', 'changed'];
const FIELDS: Field<Row>[] = [
  { key: 'name', kind: 'part', read: (row) => row.name },
  { key: 'health', kind: 'exact', read: (row) => row.health },
  { key: 'label', kind: 'exact', read: (row) => row.labels },
  { key: 'changed', kind: 'time', read: (row) => row.changedAt },
];
const NOW = 1_000_000_000;
const ROWS: Row[] = [
  { name: 'pay-api', health: 'Degraded', labels: ['team=pay'], changedAt: NOW - 60_000 },
  { name: 'pay-web', health: 'Healthy', labels: ['team=pay', 'tier=web'], changedAt: NOW - 7_200_000 },
  { name: 'Search', health: 'Missing', labels: [], changedAt: 0 },
];
const found = (text: string) => {
  const query = parse(text, KEYS, ['changed']);
  return ROWS.filter(matcher(query, FIELDS, NOW)).map((row) => row.name);
};

describe('filter', () => {
  it('matches the name by a bare text, without case', () => {
    expect(found('PAY')).toEqual(['pay-api', 'pay-web']);
    expect(found('')).toHaveLength(3);
  });
  it('takes terms as AND, commas as OR, and "-" as NOT', () => {
    expect(found('health:degraded,missing')).toEqual(['pay-api', 'Search']);
    expect(found('pay -health:degraded')).toEqual(['pay-web']);
    expect(found('pay health:missing')).toEqual([]);
  });
  it('knows globs, quotes and lists', () => {
    expect(found('name:pay-*b')).toEqual(['pay-web']);
    expect(found('label:team=pay')).toEqual(['pay-api', 'pay-web']);
    expect(found('label:"tier=web"')).toEqual(['pay-web']);
    expect(words('a "b c" d:"e f",g')).toEqual(['a', '"b c"', 'd:"e f",g']);
    expect(found('name:pay.api')).toEqual([]); // a dot is a dot
  });
  it('compares with a pattern of many stars at once', () => {
    const of = (pattern: string, ...names: string[]) => {
      const query = parse(`name:${pattern}`, KEYS);
      return names.map((name) => matcher(query, FIELDS, NOW)({ ...ROWS[0]!, name }));
    };
    expect(of('A*b*C', 'abc', 'a-b-b-c', 'ab', 'abcd', 'xabc')).toEqual([true, true, false, false, false]);
    expect(of('ab*ba', 'aba', 'abba', 'ab-ba')).toEqual([false, true, true]);
    expect(of('**', '', 'a')).toEqual([true, true]);
    expect(of('a.*', 'a.b', 'aXb')).toEqual([true, false]);
    expect(of(`${'*a'.repeat(40)}b`, 'a'.repeat(250))).toEqual([false]);
  });
  it('compares ages; what has no time matches no age', () => {
    expect(found('changed:<1h')).toEqual(['pay-api']);
    expect(found('changed:>1h')).toEqual(['pay-web']);
    expect(seconds('<2d')).toEqual({ below: true, seconds: 172_800 });
    expect(seconds('2d')).toBeNull();
  });
  it('notes unknown keys with a guess, and the rest applies', () => {
    const query = parse('heath:degraded pay', KEYS);
    expect(query.notes).toEqual(['No key `heath`. Did you mean `health`?']);
    expect(query.terms.map((term) => term.text)).toEqual(['pay']);
    expect(parse('zzzzzz:1', KEYS).notes).toEqual(['No key `zzzzzz`.']);
    expect(parse('changed:soon', KEYS, ['changed']).notes[0]).toContain('is no age');
  });
  it('does not end up in a loop with malformed input', () => {
    for (const text of ['"', 'a:"', '-', ':', 'health:', 'health:,', '"a', '-"', 'name:***', '\\', '[', '(', 'name:[']) expect(() => found(text)).not.toThrow();
  });
  it('writes facets into the text', () => {
    expect(toggled('', 'health', 'Degraded')).toBe('health:Degraded');
    expect(toggled('pay health:Degraded', 'health', 'Missing')).toBe('pay health:Degraded,Missing');
    expect(toggled('pay health:degraded,Missing x', 'health', 'Degraded')).toBe('pay health:Missing x');
    expect(toggled('health:Degraded', 'health', 'Degraded')).toBe('');
    expect(toggled('', 'runtime', 'a b')).toBe('runtime:"a b"');
    expect(toggled('runtime:"a b"', 'runtime', 'a b')).toBe('');
    expect(has('pay health:degraded', 'health', 'Degraded')).toBe(true);
    expect(has('-health:degraded', 'health', 'Degraded')).toBe(false);
  });
  it('names the term that removes most', () => {
    const query = parse('nothing health:degraded', KEYS);
    expect(narrowest(query, FIELDS, ROWS, NOW)).toMatchObject({ term: { text: 'nothing' }, matches: 1 });
    expect(without('nothing health:degraded', 'nothing')).toBe('health:degraded');
  });
});
