import { describe, expect, it, vi } from 'vitest';

import { done, outcomeOf } from '../../../apps/control-plane/console/src/data/outcome';
import { failureOf, query, request, requestText, type Failure } from '../../../apps/control-plane/console/src/data/request';

const failure = (change: Partial<Failure>): Failure => ({ tried: 'try', kind: 'failed', status: 500, message: 'It broke', requestId: 'q', ...change });
describe('outcomes', () => {
  it('are Refused when the control plane says no: nothing was changed', () => {
    for (const status of [400, 401, 403, 404, 409, 429]) expect(outcomeOf(failure({ status, message: 'no such team' }))).toMatchObject({ kind: 'refused', text: 'No such team. Nothing was changed.' });
  });
  it('are Failed when the control plane breaks', () => {
    expect(outcomeOf(failure({ status: 500 }))).toMatchObject({ kind: 'failed', text: 'It broke', requestId: 'q' });
  });
  it('are Unknown when the answer is lost or can not be read', () => {
    for (const change of [{ kind: 'unreachable' as const, status: 0 }, { status: 200 }, { status: 502 }, { status: 503 }, { status: 504 }]) expect(outcomeOf(failure(change)).kind, JSON.stringify(change)).toBe('unknown');
  });
  it('say in whole sentences what was said', () => {
    expect(outcomeOf(failure({ status: 503, message: 'the store is busy' })).text).toBe('The store is busy. Look at what is shown, which is read again, before you try again.');
  });
  it('are Done else', () => expect(done('x')).toEqual({ kind: 'done', text: 'x', requestId: '' }));
});

describe('answers', () => {
  const answer = (body: string, type: string, status = 200) => {
    globalThis.fetch = async () => new Response(body, { status, headers: { 'Content-Type': type, 'X-Request-Id': 'abc' } });
  };
  const failing = async (work: Promise<unknown>) => work.then(() => null, (error: unknown) => failureOf('try', error));
  it('of GraphQL carry the status of their error', async () => {
    answer('{"data":null,"errors":[{"message":"only an administrator","extensions":{"code":"FORBIDDEN","statusCode":403}}]}', 'application/json');
    expect(await failing(query('try', 'x'))).toMatchObject({ kind: 'refused', status: 403, message: 'only an administrator' });
    answer('{"data":null,"errors":[{"message":"Forbidden","extensions":403}]}', 'application/json');
    expect(await failing(query('try', 'x'))).toMatchObject({ kind: 'refused', status: 403 });
    answer('{"data":null,"errors":[{"message":"a rule has at least one team","extensions":{"code":"INVALID_ARGUMENT","statusCode":400}}]}', 'application/json');
    expect(outcomeOf((await failing(query('try', 'x')))!).kind).toBe('refused');
    answer('{"data":null,"errors":[{"message":"odd"}]}', 'application/json');
    expect(outcomeOf((await failing(query('try', 'x')))!).kind).toBe('failed');
  });
  it('that are no JSON leave an action open', async () => {
    answer('', 'application/json');
    expect(outcomeOf((await failing(request('try', '/x', { method: 'DELETE' })))!).kind).toBe('unknown');
  });
  it('that do not come end the request', async () => {
    globalThis.fetch = (_address, init) => new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))));
    for (const options of [{}, { signal: new AbortController().signal }]) {
      const limit = new AbortController();
      const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
      const ended = failing(request('try', '/x', options));
      limit.abort();
      expect(await ended).toMatchObject({ kind: 'unreachable', status: 0 });
      timeout.mockRestore();
    }
  });
  it('that break off are not called something else than JSON', async () => {
    globalThis.fetch = async () => new Response(new ReadableStream({ start: (stream) => stream.error(new TypeError('network error')) }), { headers: { 'Content-Type': 'application/json' } });
    expect(await failing(request('try', '/x'))).toMatchObject({ status: 200, message: 'The response broke off.' });
    answer('<html>', 'text/html');
    expect(await failing(request('try', '/x'))).toMatchObject({ message: 'The response is not JSON.' });
  });
  it('of a text are no page of a proxy', async () => {
    answer('<html>sign in at the proxy</html>', 'text/html');
    expect(outcomeOf((await failing(requestText('try', '/x')))!).kind).toBe('unknown');
    answer('{"message":"no"}', 'application/json', 403);
    expect(await failing(requestText('try', '/x'))).toMatchObject({ kind: 'refused', message: 'no' });
  });
});
