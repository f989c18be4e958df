import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { Failure } from '../../../apps/control-plane/console/src/data/request';
import { REFRESH, SYNC, LIVE_STATE } from '../../../apps/control-plane/console/src/data/runtime_documents';

type Runtime = typeof import('../../../apps/control-plane/console/src/data/runtime');
type Reply = () => Response | Promise<Response>;

const json = (body: unknown, status = 200, headers = {}) => () => new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', 'x-request-id': 'r1', ...headers } });
const data = json({ data: { sync: { metadata: { name: 'shop' } } } });
const version = json({ data: { versionInfo: { version: '1' } } });
const error = (message: string, extensions: unknown) => json({ data: null, errors: [{ message, extensions }] });
const down: Reply = () => { throw new TypeError('Failed to fetch'); };
let number = 0;
const token = (expiresIn = 300): Reply => () => json({ token: `page_${++number}`, address: 'https://prod.example', expiresIn })();

let module: Runtime;
let sent: { url: string; init: RequestInit }[];
/** Answers requests of tokens and of the runtime in this order; the last one again and again. */
function script(tokens: Reply[], answers: Reply[]) {
  const next = (list: Reply[]) => (list.length > 1 ? list.shift()! : list[0]!)();
  globalThis.fetch = (async (url: string, init: RequestInit) => {
    sent.push({ url, init });
    return next(url.startsWith('/console') ? tokens : answers);
  }) as typeof fetch;
}
/** Reaches the runtime once, so that changes are sent at once. */
async function reach() {
  script([token()], [version]);
  await module.askRuntime('prod', LIVE_STATE);
}
const toRuntime = () => sent.filter(({ url }) => url.startsWith('https:'));
const tokenOf = ({ init }: { init: RequestInit }) => (init.headers as Record<string, string>)['x-access-token'];

beforeEach(async () => {
  vi.resetModules();
  module = await import('../../../apps/control-plane/console/src/data/runtime');
  sent = [];
  number = 0;
});

describe('a question to a runtime', () => {
  it('carries the token, and no cookie or referrer', async () => {
    script([token()], [json({ data: { x: 1 } })]);
    expect(await module.askRuntime('prod', LIVE_STATE, { name: 'shop' })).toEqual({ kind: 'done', data: { x: 1 } });
    expect(sent.map(({ url }) => url)).toEqual(['/console/api/v1/runtimes/prod/token', 'https://prod.example/app-proxy/api/graphql']);
    expect(sent[1]!.init).toMatchObject({ credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer' });
    expect(tokenOf(sent[1]!)).toBe('page_1');
  });
  it('shares a token until shortly before its end', async () => {
    script([token(300)], [json({ data: {} })]);
    await Promise.all([module.askRuntime('prod', LIVE_STATE), module.askRuntime('prod', LIVE_STATE)]);
    expect(number).toBe(1);
    vi.useFakeTimers({ now: Date.now() + 271_000, toFake: ['Date'] });
    await module.askRuntime('prod', LIVE_STATE);
    vi.useRealTimers();
    expect(number).toBe(2);
  });
  it('is sent once more with a new token after 401', async () => {
    script([token()], [json({ error: 'Unauthorized: Invalid token.' }, 401), json({ data: { x: 1 } })]);
    expect((await module.askRuntime('prod', LIVE_STATE)).kind).toBe('done');
    expect(toRuntime().map(tokenOf)).toEqual(['page_1', 'page_2']);
    script([token()], [json({ error: 'Unauthorized: Invalid token.' }, 401)]);
    expect(await module.askRuntime('prod', SYNC)).toMatchObject({ kind: 'refused', by: 'The runtime', text: expect.stringMatching(/does not accept your session.*Nothing was changed\./) });
  });
  it('is no change until the runtime was reached', async () => {
    script([token()], [down]);
    const answer = await module.askRuntime('prod', SYNC);
    expect(answer).toMatchObject({ kind: 'failed', text: 'The runtime prod could not be reached by your browser at https://prod.example. Nothing was sent.', allows: expect.stringContaining('cors') });
    expect(toRuntime().every(({ init }) => String(init.body).includes('versionInfo'))).toBe(true);
  });
  it('leaves a change open when its answer is lost', async () => {
    await reach();
    script([token()], [down]);
    expect(await module.askRuntime('prod', SYNC)).toMatchObject({ kind: 'unknown', text: expect.stringContaining('Check the timeline before trying again.') });
    await reach();
    for (const reply of [json({}, 502), json({}, 504), json({}, 500), () => new Response('<html>', { status: 200 })]) {
      script([token()], [reply]);
      expect((await module.askRuntime('prod', SYNC)).kind).toBe('unknown');
    }
    script([token()], [json({}, 502)]);
    expect((await module.askRuntime('prod', LIVE_STATE)).kind, 'a reading changes nothing').toBe('failed');
  });
  it('leaves two changes open when the answers of both are lost', async () => {
    await reach();
    script([token()], [down]);
    const both = await Promise.all([module.askRuntime('prod', SYNC), module.askRuntime('prod', REFRESH)]);
    expect(both.map(({ kind }) => kind)).toEqual(['unknown', 'unknown']);
  });
  it('leaves a change open when a proxy says 503: it may have lost the answer', async () => {
    await reach();
    script([token()], [() => new Response('upstream connect error or disconnect/reset before headers', { status: 503 })]);
    expect((await module.askRuntime('prod', SYNC)).kind).toBe('unknown');
    script([token()], [json({ message: 'the runtime restarts' }, 503)]);
    expect(await module.askRuntime('prod', SYNC)).toMatchObject({ kind: 'failed', text: expect.stringMatching(/Nothing was changed\.$/) });
  });
  it('was not sent when the control plane gives no token', async () => {
    script([json({ message: 'The runtime prod has registered no address.' }, 409)], [data]);
    expect(await module.askRuntime('prod', SYNC)).toMatchObject({ kind: 'refused', by: 'The control plane', help: 'access modes', text: 'The runtime prod has registered no address. Nothing was changed.' });
    script([down], [data]);
    expect(await module.askRuntime('prod', SYNC)).toMatchObject({ kind: 'failed', text: expect.stringContaining('Nothing was changed.') });
    script([json({ message: 'Unauthorized' }, 401)], [data]);
    expect(await module.askRuntime('prod', SYNC)).toMatchObject({ kind: 'refused', failure: 'signed-out', allows: 'Sign in again, then repeat it.' });
    script([json({ token: 7 })], [data]);
    expect((await module.askRuntime('prod', SYNC)).kind).toBe('failed');
    expect(toRuntime()).toEqual([]);
  });
});

describe('a refusal', () => {
  const cases: [string, unknown, string, string][] = [
    ['Forbidden', 403, 'A rule', 'An administrator of the account can make a rule'],
    ['an operation of shop is in progress', { code: 'ARGO_CD_OPERATION_IN_PROGRESS', statusCode: 409 }, 'Argo CD', 'Wait until'],
    ['shop syncs by itself', { code: 'ARGO_CD_AUTO_SYNC', statusCode: 409 }, 'Argo CD', 'Revert the commit'],
    ['only an administrator of the account may do this', { code: 'FORBIDDEN', statusCode: 403 }, 'The runtime', 'An administrator'],
    ['cannot sync: blocked by sync window', { code: 'INVALID_ARGUMENT', statusCode: 400 }, 'A sync window', 'Wait until'],
    ['Argo CD does not let the runtime do this', { code: 'ARGO_NOT_AVAILABLE', statusCode: 503 }, 'Argo CD', 'the account of the runtime'],
    ['the runtime is not configured for an Argo CD; set app-proxy.actions.enabled', { code: 'ARGO_NOT_AVAILABLE', statusCode: 503 }, 'The runtime', ''],
    ['application not found', { code: 'NOT_FOUND_ERROR', statusCode: 404 }, 'Argo CD', ''],
  ];
  it.each(cases)('%s says who and what would allow it', async (message, extensions, by, allows) => {
    script([token()], [version, error(message, extensions)]);
    const answer = await module.askRuntime('prod', REFRESH);
    expect(answer).toMatchObject({ kind: 'refused', by, text: expect.stringMatching(/Nothing was changed\.$/) });
    expect((answer as { allows: string }).allows).toContain(allows);
  });
  it('is none when Argo CD may have got the request', async () => {
    await reach();
    script([token()], [error('Argo CD cannot be asked now', { code: 'ARGO_NOT_AVAILABLE', statusCode: 503 })]);
    expect((await module.askRuntime('prod', SYNC)).kind).toBe('unknown');
    script([token()], [error('Argo CD did not answer in time', { code: 'TIMEOUT', statusCode: 504 })]);
    expect((await module.askRuntime('prod', SYNC)).kind).toBe('unknown');
  });
  it('is a failure when the rules are not known', async () => {
    script([token()], [version, error('the rules of the account have not been fetched yet', { code: 'UNAVAILABLE', statusCode: 503 })]);
    expect(await module.askRuntime('prod', SYNC)).toMatchObject({ kind: 'failed', text: expect.stringMatching(/Nothing was changed\.$/) });
  });
});

it('a reading throws what is known', async () => {
  script([token()], [down]);
  const failure = await module.readRuntime('read the manifest', 'prod', LIVE_STATE).then(() => null, (thrown: { failure: Failure }) => thrown.failure);
  expect(failure).toMatchObject({ tried: 'read the manifest', kind: 'unreachable', message: expect.stringContaining('could not be reached by your browser at https://prod.example') });
});
