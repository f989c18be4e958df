import { readFileSync } from 'node:fs';
import { buildSchema, type GraphQLEnumType } from 'graphql';
import { describe, expect, it } from 'vitest';

import { outcomeOf } from '../../../apps/control-plane/console/src/data/outcome';
import { failureOf } from '../../../apps/control-plane/console/src/data/request';
import { createKey, readTeams } from '../../../apps/control-plane/console/src/pages/access/api';
import { applicationOf, applicationText, ATTRIBUTES, invitationAddress, isKey, plain, reasonOf, ruleMistake, sentenceOf, TYPES, viewWarning, type Attribute, type Rule } from '../../../apps/control-plane/console/src/pages/access/types';

const NAMES: Record<string, string> = { p: 'pay', c: 'core', u: 'users' };
const nameOf = (id: string) => NAMES[id];
const rule = (change: Partial<Rule> = {}): Rule => ({ id: 'r', entityType: 'gitopsApplications', teams: ['p'], tags: [], actions: ['SYNC'], attributes: [], ...change });
const where = (name: string, value: string, key: string | null = null): Attribute => ({ name, key, value });
const said = (change: Partial<Rule>) => plain(sentenceOf(rule(change), nameOf));

describe('rules as sentences', () => {
  it('name teams, actions, what they are on, and the conditions', () => {
    expect(said({ actions: ['SYNC', 'REFRESH'], attributes: [where('NAMESPACE', 'shop'), where('RUNTIME', 'prod')] }))
      .toBe('Team pay may SYNC and REFRESH applications where namespace is shop and runtime is prod');
    expect(said({ teams: ['p', 'c', 'u'], actions: ['VIEW'] })).toBe('Teams pay, core and users may VIEW all applications');
    expect(said({ entityType: 'workflows', actions: ['STOP'] })).toBe('Team pay may STOP all workflows');
  });
  it('write values of one attribute as alternatives, as the control plane evaluates them', () => {
    expect(said({ attributes: [where('RUNTIME', 'prod'), where('NAMESPACE', 'shop'), where('RUNTIME', 'staging')] }))
      .toBe('Team pay may SYNC applications where runtime is prod or staging and namespace is shop');
  });
  it('know the three forms of a label, and that labels of different keys all count', () => {
    expect(said({ attributes: [where('LABEL', 'pay', 'team'), where('LABEL', 'team=core'), where('LABEL', 'critical')] }))
      .toBe('Team pay may SYNC applications where label team is pay or core and label critical is set');
  });
  it('say when a team is gone, and keep names apart from words', () => {
    expect(said({ teams: ['x'] })).toBe('Team that is gone (x) may SYNC all applications');
    const pieces = sentenceOf(rule({ attributes: [where('RUNTIME', 'prod and namespace is shop')] }), nameOf);
    expect(pieces).toContainEqual({ name: 'prod and namespace is shop' });
  });
  it('show what is not known as it is', () => {
    expect(said({ entityType: 'helmCharts', attributes: [where('COLOUR', 'red')] })).toBe('Team pay may SYNC helmCharts where COLOUR is red');
  });
});

describe('a rule that is being written', () => {
  it('lacks something until it has a team, an action and values', () => {
    expect(ruleMistake(rule({ teams: [] }))).toMatch(/team/);
    expect(ruleMistake(rule({ actions: [] }))).toMatch(/action/);
    expect(ruleMistake(rule({ attributes: [where('RUNTIME', ' ')] }))).toBe('The condition on runtime has no value.');
    expect(ruleMistake(rule({ attributes: [where('LABEL', '', 'team')] }))).toBe('');
    expect(ruleMistake(rule())).toBe('');
  });
  it('warns of the first and of the last rule with VIEW alone', () => {
    const view = rule({ id: 'v', actions: ['VIEW'] });
    expect(viewWarning('create', { ...view, id: '' }, [rule()])).toMatch(/first rule with VIEW/);
    expect(viewWarning('create', { ...view, id: '' }, [view])).toBe('');
    expect(viewWarning('create', rule(), [])).toBe('');
    expect(viewWarning('remove', view, [view, rule()])).toMatch(/last rule with VIEW/);
    expect(viewWarning('remove', view, [view, { ...view, id: 'w' }])).toBe('');
    expect(viewWarning('create', rule({ entityType: 'workflows', actions: ['VIEW'] }), [])).toBe('');
  });
  it('chooses from names that the control plane has', () => {
    const schema = buildSchema(readFileSync(new URL('../../../apps/control-plane/schema.graphql', import.meta.url), 'utf8'));
    const valuesOf = (name: string) => (schema.getType(name) as GraphQLEnumType).getValues().map((value) => value.name);
    expect(valuesOf('AbacEntityValues')).toEqual(expect.arrayContaining(Object.keys(TYPES)));
    expect(valuesOf('AbacAttributeNames').sort()).toEqual(Object.keys(ATTRIBUTES).sort());
    for (const { actions, attributes } of Object.values(TYPES)) {
      expect(valuesOf('AbacActionNames')).toEqual(expect.arrayContaining([...actions]));
      expect(valuesOf('AbacAttributeNames')).toEqual(expect.arrayContaining([...attributes]));
    }
  });
});

describe('decisions', () => {
  const user = { id: 'b', name: 'bob' };
  it('say why', () => {
    expect(reasonOf({ reason: 'RULE', team: { id: 'p', name: 'pay' }, user }, false)).toBe('A rule allows it, since bob is in team pay:');
    expect(reasonOf({ reason: 'RULE', team: { id: 'p', name: 'pay' }, user }, true)).toBe('A rule allows it, since you are in team pay:');
    expect(reasonOf({ reason: 'NO_RULE', team: null, user }, false)).toBe('No rule of the teams that bob is in allows it.');
    expect(reasonOf({ reason: 'NEW', team: null, user }, false)).toMatch(/NEW/);
  });
  it('are about an application of three names', () => {
    const at = { runtime: 'prod', namespace: 'argocd', name: 'api' };
    expect(applicationOf(applicationText(at))).toEqual(at);
    for (const text of ['', 'prod', 'prod/argocd', 'prod//api', 'a/b/c/d']) expect(applicationOf(text)).toBeNull();
  });
});

describe('answers', () => {
  const answer = (body: string, type: string, status = 200) => {
    globalThis.fetch = async () => new Response(body, { status, headers: { 'Content-Type': type, 'X-Request-Id': 'abc' } });
  };
  const failing = async (work: Promise<unknown>) => work.then(() => null, (error: unknown) => failureOf('try', error));
  it('are a key, or no key was made for certain', async () => {
    answer('0123456789abcdef01234567.c2VjcmV0', 'text/plain; charset=utf-8');
    expect(await createKey('', { name: 'x', scopes: [] })).toBe('0123456789abcdef01234567.c2VjcmV0');
    answer('<html>sign in at the proxy</html>', 'text/html');
    expect(outcomeOf((await failing(createKey('', { name: 'x', scopes: [] })))!).kind).toBe('unknown');
    answer('hello', 'text/plain');
    expect(outcomeOf((await failing(createKey('', { name: 'x', scopes: [] })))!).kind).toBe('unknown');
    answer('{"message":"a key has a name"}', 'application/json', 400);
    expect(outcomeOf((await failing(createKey('', { name: 'x', scopes: [] })))!)).toEqual({ kind: 'refused', text: 'A key has a name. Nothing was changed.', requestId: 'abc' });
  });
  it('are a list, or a failed reading', async () => {
    answer('{"teams":[]}', 'application/json');
    expect(await failing(readTeams())).toMatchObject({ status: 200, message: 'The response is no list.' });
    answer('[]', 'application/json');
    expect(await readTeams()).toEqual([]);
  });
});

describe('secrets', () => {
  it('have the form of a key', () => {
    expect(isKey('0123456789abcdef01234567.aB3_-x')).toBe(true);
    for (const text of ['', 'key', 'a.b.c', 'a.', '<b>.c']) expect(isKey(text)).toBe(false);
  });
  it('of an invitation are an address of the web', () => {
    const origin = 'https://cp.example.com';
    expect(invitationAddress('/invitation?token=t', origin)).toBe('https://cp.example.com/invitation?token=t');
    expect(invitationAddress('https://other.example.com/invitation?token=t', origin)).toBe('https://other.example.com/invitation?token=t');
    for (const link of [undefined, '', 7, 'javascript:alert(1)']) expect(invitationAddress(link, origin)).toBe('');
  });
});
