import { describe, expect, it } from 'vitest';

import { endedOperation, isAutomated, newOperation, previewOf, previewText, rightOf, running, starter, type LiveResource, type LiveState, type Operation } from '../../../apps/control-plane/console/src/pages/application/actions/operations';

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
