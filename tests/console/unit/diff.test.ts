import { describe, expect, it } from 'vitest';

import { compare, packed, runsOf, type Task } from '../../../apps/control-plane/console/src/diff/compare';
import { ignoreSnippet, pathOf } from '../../../apps/control-plane/console/src/diff/ignore';
import { changesOf, countsOf, rowsOf } from '../../../apps/control-plane/console/src/diff/rows';
import { readTree, yamlLines, type Path } from '../../../apps/control-plane/console/src/diff/tree';

const yaml = (value: unknown) => yamlLines(readTree(typeof value === 'string' ? value : JSON.stringify(value)));
const task = (left: unknown, right: unknown, more: Partial<Task> = {}): Task => ({
  left: left === null ? '' : JSON.stringify(left), right: right === null ? '' : JSON.stringify(right), isLeftText: false, isRightText: false, isSecret: false, noise: false, ...more });

describe('a manifest as YAML', () => {
  it('has a line for each scalar, and keys in one order', () => {
    expect(yaml({ spec: { replicas: 3, list: [{ b: 1, a: 'x' }, 'z', [1]] }, kind: 'Deployment', apiVersion: 'apps/v1', empty: {}, none: [] })).toEqual([
      'apiVersion: apps/v1', 'kind: Deployment', 'spec:', '  list:', '  - a: x', '    b: 1', '  - z', '  -', '    - 1', '  replicas: 3', 'empty: {}', 'none: []']);
  });
  it('keeps numbers of any size as they are', () => {
    expect(yaml('{"a":32000000000000000000,"b":1.50}')).toEqual(['a: 32000000000000000000', 'b: 1.50']);
  });
  it('quotes what would read as something else', () => {
    expect(yaml({ a: 'true', b: '', c: '12', d: 'a: b', e: ' x', f: '<script>', 'g: h': 'ok', i: 'No' })).toEqual([
      'a: "true"', 'b: ""', 'c: "12"', 'd: "a: b"', 'e: " x"', 'f: "<script>"', '"g: h": ok', 'i: "No"']);
  });
  it('writes texts of several lines as blocks, unless that would lose something', () => {
    expect(yaml({ a: 'x\ny\n', b: 'x\ny', c: 'x\n\n', d: ' x\ny', e: 'x\r\ny' })).toEqual(['a: |', '  x', '  y', 'b: |-', '  x', '  y', 'c: |+', '  x', '', 'd: " x\\ny"', 'e: "x\\r\\ny"']);
  });
  it.each([['nothing', ''], ['an open map', '{'], ['a key alone', '{"a"}'], ['a trailing comma', '[1,]'], ['a tail', '{"a":1}x'], ['bare keys', '{a:1}'], ['deep nesting', `${'['.repeat(300)}${']'.repeat(300)}`]])('refuses %s', (_what, text) => {
    expect(() => readTree(text)).toThrow(SyntaxError);
  });
});

describe('noise', () => {
  const desired = { kind: 'Deployment', metadata: { name: 'a' }, spec: { replicas: 2, template: { spec: { containers: [{ name: 'c', image: 'x:1' }] } } } };
  const live = { ...desired, status: { replicas: 2 }, metadata: { name: 'a', uid: '1', managedFields: [{ manager: 'm' }], annotations: { 'deployment.kubernetes.io/revision': '3' } },
    spec: { ...desired.spec, replicas: 3, revisionHistoryLimit: 10, strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      template: { spec: { restartPolicy: 'Always', containers: [{ name: 'c', image: 'x:1', imagePullPolicy: 'IfNotPresent' }] } } } };
  it('is hidden, and its lines are counted', () => {
    const found = compare(task(desired, live));
    expect(countsOf(found)).toEqual({ removed: 1, added: 1 });
    expect(found.hidden).toBe(15);
    const all = compare(task(desired, live, { noise: true }));
    expect(all.hidden).toBe(0);
    expect(all.right.length - found.right.length).toBe(15);
  });
  it('is no default when Git says otherwise, or the value is another one', () => {
    const found = compare(task({ spec: { revisionHistoryLimit: 3 } }, { spec: { revisionHistoryLimit: 10, replicas: 1, restartPolicy: 'Never' } }));
    expect(found.right).toContain('  revisionHistoryLimit: 10');
    expect(found.right).toContain('  restartPolicy: Never');
  });
});

describe('a Secret', () => {
  it('shows whether values are equal and nothing else', () => {
    const found = compare(task({ data: { same: 'hidden value 1', other: 'hidden value 2', gone: 'hidden value 3' } }, { data: { same: 'hidden value 1', other: 'hidden value 4' } }, { isSecret: true }));
    expect(found.left).toEqual(['data:', '  gone: "(hidden)"', '  other: "(differs, left)"', '  same: "(equal)"']);
    expect(found.right).toEqual(['data:', '  other: "(differs, right)"', '  same: "(equal)"']);
  });
});

describe('a comparison', () => {
  it('takes files as they are, and absent sides as empty', () => {
    expect(compare(task(null, { a: 1 }, { isLeftText: true, left: '# note\na: 1\n' }))).toMatchObject({ left: ['# note', 'a: 1'], right: ['a: 1'], runs: [['-', 1], ['=', 1]] });
    expect(compare(task(null, { a: 1 })).runs).toEqual([['+', 1]]);
    expect(compare(task(null, null)).runs).toEqual([]);
  });
  it('packs lines into one text, and finds each', () => {
    for (const lines of [[], [''], ['a', '', 'bc', '']]) {
      const one = packed(lines);
      expect([one.length, ...lines.map((_, at) => one.at(at)), one.at(lines.length)]).toEqual([lines.length, ...lines, undefined]);
    }
  });
  it('says which side can not be read', () => {
    expect(compare(task(null, null, { left: '{' })).problem).toMatch(/on the left can't be read/);
  });
  it('gives up on what is too different, in time', () => {
    const lines = (mark: string) => Array.from({ length: 30_000 }, (_, at) => `${mark}${at}`);
    expect(runsOf(lines('a'), lines('b'))).toBeNull();
  }, 20_000);
  it('counts what is too large, and shows none of it', () => {
    expect(compare(task({ a: 'x\n'.repeat(200_000) }, { a: 1 }))).toMatchObject({ counts: [200_001, 1], runs: null, left: [], right: [] });
  });
});

describe('rows', () => {
  const equal = (count: number) => Array.from({ length: count }, (_, at) => `same ${at}`);
  const found = { runs: runsOf([...equal(20), 'a', 'b', ...equal(3)], [...equal(20), 'c', ...equal(3)]) };
  it('fold equal lines with their count, and open one', () => {
    const rows = rowsOf(found, false, new Set());
    expect(rows[0]).toEqual({ kind: 'fold', left: 0, right: 0, count: 17 });
    expect(rows.map(({ kind }) => kind).join('')).toBe('fold===--+===');
    expect(changesOf(rows)).toEqual([4]);
    expect(rowsOf(found, false, new Set([0]))).toHaveLength(26);
  });
  it('put removed and added lines beside each other', () => {
    const rows = rowsOf(found, true, new Set());
    expect(rows.filter(({ kind }) => kind === '~')).toEqual([{ kind: '~', left: 20, right: 20 }, { kind: '~', left: 21, right: -1 }]);
  });
  it('show every line of both sides once', () => {
    for (let seed = 1; seed < 60; ++seed) {
      const lines = (salt: number) => Array.from({ length: 40 }, (_, at) => String((at * seed * salt) % 7));
      const [left, right] = [lines(3), lines(5)];
      for (const isSplit of [false, true]) {
        const rows = rowsOf({ runs: runsOf(left, right) }, isSplit, new Set([...left.keys()]));
        expect(rows.flatMap((row) => (row.left >= 0 ? [row.left] : []))).toEqual([...left.keys()]);
        expect(rows.flatMap((row) => (row.right >= 0 ? [row.right] : []))).toEqual([...right.keys()]);
        for (const row of rows) if (row.kind === '=') expect(left[row.left]).toBe(right[row.right]);
      }
    }
  });
});

describe('a snippet that ignores a field', () => {
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'api', annotations: { 'example.com/a~b': '1' } },
    spec: { replicas: 2, template: { spec: { containers: [{ name: "o'side", image: 'x', args: ['-a', '-b'] }], tolerations: [{ key: 'k' }] } } }, data: { text: 'a\nb\n' } };
  const of = { group: 'apps', kind: 'Deployment', namespace: 'shop', name: 'api' };
  const whole = task(deployment, deployment);
  const lines = yaml(deployment);
  const at = (line: string) => pathOf(whole, 'right', lines.indexOf(line))!;
  const snippet = (line: string) => ignoreSnippet(of, at(line).tree, at(line).path);

  it('is for each line of the text', () => {
    const places: Path[] = [];
    expect(yamlLines(readTree(JSON.stringify(deployment)), places)).toHaveLength(places.length);
    expect(pathOf(whole, 'right', lines.indexOf('  text: |') + 2)?.path).toEqual(['data', 'text']);
    expect(pathOf(task(deployment, null), 'right', 0)).toBeNull();
  });
  it('has a pointer for keys', () => {
    expect(snippet('  replicas: 2')).toBe('ignoreDifferences:\n  - group: apps\n    kind: Deployment\n    name: api\n    namespace: shop\n    jsonPointers:\n      - /spec/replicas\n');
    expect(snippet('    "example.com/a~b": "1"')).toContain('      - /metadata/annotations/example.com~1a~0b\n');
    expect(snippet('      - key: k')).toContain('      - /spec/template/spec/tolerations/0/key\n');
  });
  it('finds items of lists by their name, also the whole item', () => {
    expect(snippet('        image: x')).toContain(`    jqPathExpressions:\n      - '.spec.template.spec.containers[] | select(.name == "o''side") | .image'\n`);
    expect(snippet('        - "-b"')).toContain(`select(.name == "o''side") | .args[1]'\n`);
    expect(snippet('        args:')).toContain(`| .args'\n`);
    expect(snippet(`      - name: "o'side"`)).toContain(`containers[] | select(.name == "o''side")'\n`);
  });
  it('leaves out what an object does not have, and quotes what YAML would read otherwise', () => {
    const { tree, path } = at('  replicas: 2');
    expect(ignoreSnippet({ group: '', kind: 'Namespace', namespace: null, name: '1.5' }, tree, path)).toBe("ignoreDifferences:\n  - kind: Namespace\n    name: '1.5'\n    jsonPointers:\n      - /spec/replicas\n");
  });
});
