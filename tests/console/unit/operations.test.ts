import { describe, expect, it } from 'vitest';

import { operationAt } from '../../../apps/control-plane/console/src/pages/application/actions/operation';
import { begunSince, choices, chosenOf, endedOperation, firstTarget, idOf, isAutomated, newOperation, previewOf, previewText, rightOf, running, starter, targetsOf, type LiveResource, type LiveState, type Operation } from '../../../apps/control-plane/console/src/pages/application/actions/operations';
import type { Release } from '../../../apps/control-plane/console/src/pages/application/types';

const resource = (kind: string, name: string, change: Partial<LiveResource> = {}): LiveResource =>
  ({ group: '', version: 'v1', kind, namespace: 'shop', name, status: 'SYNCED', health: { status: 'HEALTHY' }, requiresPruning: false, hook: false, ...change });
const operation = (change: Partial<Operation> = {}): Operation =>
  ({ phase: 'Running', message: null, startedAt: '2026-11-27T10:00:00Z', finishedAt: null, operation: { initiatedBy: { username: 'dana' } }, ...change });
const state = (operationState: Operation | null, automated: object | null = null): LiveState =>
  ({ applicationProxyQuery: { spec: { syncPolicy: { automated: automated as never } }, status: { sync: null, resources: [], operationState } } });

describe('the preview of a sync', () => {
  const all = [resource('Deployment', 'web', { status: 'OUT_OF_SYNC' }), resource('Service', 'web'), resource('Secret', 'new', { status: 'OUT_OF_SYNC', health: { status: 'MISSING' } }), resource('Job', 'b', { status: 'OUT_OF_SYNC', requiresPruning: true })];
  it('counts what changes, and names what is deleted', () => {
    expect(previewText(previewOf(all, true))).toBe('Changes 1, creates 1, deletes 1: Job b.');
    expect(previewText(previewOf(all, false))).toBe('Changes 1, creates 1. Leaves 1 that is not in Git any more: Job b.');
  });
  it('says when nothing changes, and when it is not known', () => {
    expect(previewText(previewOf([resource('Service', 'web')], true))).toBe('Changes nothing: all objects are as Git wants them.');
    expect(previewText(previewOf(null, true))).toContain('is not known');
  });
  it('names five and counts the rest', () => {
    const many = Array.from({ length: 8 }, (_, index) => resource('Job', `j${index}`, { requiresPruning: true }));
    expect(previewText(previewOf(many, true))).toBe('Deletes 8: Job j0, Job j1, Job j2, Job j3, Job j4 and 3 more.');
  });
});

describe('objects of a sync', () => {
  const all = [resource('Service', 'a'), resource('Job', 'hook', { hook: true }), resource('ConfigMap', 'z', { status: 'OUT_OF_SYNC' }), resource('Job', 'b', { requiresPruning: true }), resource('Deployment', 'd', { group: 'apps', namespace: null })];
  it('are those that differ first, without hooks', () => {
    expect(choices(all).map(({ name }) => name)).toEqual(['z', 'b', 'a', 'd']);
  });
  it('are sent with what tells them apart', () => {
    expect(chosenOf(all, new Set([idOf(all[4]!), idOf(all[0]!)]))).toEqual([{ group: '', kind: 'Service', namespace: 'shop', name: 'a' }, { group: 'apps', kind: 'Deployment', namespace: '', name: 'd' }]);
  });
});

describe('a rollback', () => {
  const releases = [{ historyId: 1, current: true }, { historyId: 0, current: false }];
  it('goes to the first deployment, too, which is no. 0', () => {
    expect(targetsOf(releases)).toEqual([{ historyId: 0, current: false }]);
    expect(firstTarget(targetsOf(releases), null)).toBe(0);
  });
  it('goes to the one that was wanted, else to the newest, and nowhere before they are known', () => {
    const targets = [{ historyId: 5 }, { historyId: 4 }, { historyId: 0 }];
    expect([4, 0, null, 9].map((wanted) => firstTarget(targets, wanted))).toEqual([4, 0, 5, 5]);
    expect(firstTarget([], 0)).toBeUndefined();
  });
});

describe('the address of an operation', () => {
  const last = { phase: 'Running', message: null, startedAt: '2026-11-27T10:00:00Z', finishedAt: null, revision: 'abc', initiatedBy: 'dana' };
  const release = { historyId: 7, syncOperationRevision: 'def', operationState: { phase: 'Succeeded', message: 'done', startedAt: '2026-11-26T10:00:00.000Z', finishedAt: '2026-11-26T10:01:00Z', initiatedBy: 'ann' } } as Release;
  it('finds the last one and that of a deployment, and says what else it may be', () => {
    expect(operationAt({ operation: last }, [release], '2026-11-27T10:00:00.000Z')).toMatchObject({ phase: 'Running', revision: 'abc', by: 'dana', historyId: null });
    expect(operationAt({ operation: last }, [release], '2026-11-26T10:00:00Z')).toMatchObject({ phase: 'Succeeded', message: 'done', revision: 'def', historyId: 7 });
    expect(operationAt({ operation: last }, [release], '2026-11-27T11:00:00Z')).toBe('later');
    expect(operationAt({ operation: last }, [release], '2026-11-20T11:00:00Z')).toBe('earlier');
    expect(operationAt({ operation: null }, [], 'nonsense')).toBe('earlier');
  });
  it('is known when another one than before has begun', () => {
    expect(begunSince(state(null), state(operation()))).toBe('2026-11-27T10:00:00Z');
    expect(begunSince(state(operation()), state(operation({ phase: 'Succeeded' })))).toBe('');
    expect(begunSince(state(operation()), state(null))).toBe('');
  });
});

describe('an operation', () => {
  it('is in progress, by somebody', () => {
    expect(running(state(operation()))?.phase).toBe('Running');
    expect(running(state(operation({ phase: 'Terminating' })))).not.toBeNull();
    for (const none of [null, state(null), state(operation({ phase: 'Succeeded' }))]) expect(running(none)).toBeNull();
    expect(starter(operation())).toBe('dana');
    expect(starter(operation({ operation: { initiatedBy: { automated: true } } }))).toBe('automated sync');
    expect(starter(operation({ operation: null }))).toBe('somebody who is not named');
    expect(isAutomated(state(null, {}))).toBe(true);
    expect(isAutomated(state(null))).toBe(false);
  });
  it('is found after a lost answer only if it is another one', () => {
    expect(newOperation(state(operation()), state(operation({ phase: 'Succeeded' })))).toBeNull();
    expect(newOperation(state(null), state(null))).toBeNull();
    expect(newOperation(state(operation()), state(operation({ startedAt: '2026-11-27T11:00:00Z' })))).toContain('by dana has begun since, at 2026-11-27T11:00:00Z');
    expect(endedOperation(state(operation()), state(operation()))).toBeNull();
    expect(endedOperation(state(operation()), state(operation({ phase: 'Failed' })))).toBe('The operation is Failed.');
    expect(endedOperation(state(null), state(null))).toBeNull();
  });
});

it('actions need the rights that app-proxy asks for', () => {
  const rollout = { group: 'argoproj.io', kind: 'Rollout' };
  expect(rightOf(rollout, 'promote-full')).toBe('ROLLOUT_PROMOTE_FULL');
  expect(rightOf(rollout, 'resume')).toBe('ROLLOUT_RESUME');
  expect(rightOf({ group: 'apps', kind: 'Deployment' }, 'restart')).toBe('RESTART');
  expect(rightOf({ group: 'apps', kind: 'Deployment' }, 'abort')).toBe('');
  expect(rightOf(rollout, 'something-new')).toBe('');
});
