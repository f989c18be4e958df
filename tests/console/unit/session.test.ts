// Who is signed in, while pages stay open and others sign in and out beside them.
import { beforeEach, describe, expect, it, vi } from 'vitest';

type Session = typeof import('../../../apps/control-plane/console/src/shell/session');
type Client = typeof import('../../../apps/control-plane/console/src/live/client');
let session: Session;
let client: Client;
let who: () => Response;
let logout: () => Response;
const reload = vi.fn();
let shown: () => void;

const user = (id: string, account: string) => () => Response.json({ data: { me: { id, name: id, email: null, isAdmin: false, activeAccount: { id: account, name: account, admins: [] } } } });
const nobody = () => Response.json({ message: 'Unauthorized' }, { status: 401 });
const settle = async () => { for (let at = 0; at < 20; ++at) await Promise.resolve(); await new Promise((resolve) => setTimeout(resolve, 0)); };

beforeEach(async () => {
  vi.resetModules();
  reload.mockReset();
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} });
  vi.stubGlobal('location', { pathname: '/applications', search: '', origin: 'https://console.example', reload, assign: () => {} });
  vi.stubGlobal('document', { hidden: false, querySelector: () => null, addEventListener: (type: string, call: () => void) => { if (type === 'visibilitychange') shown = call; } });
  vi.stubGlobal('history', { pushState: () => {}, replaceState: () => {}, state: null });
  vi.stubGlobal('fetch', async (address: string) => {
    if (address.endsWith('/login')) return Response.json({});
    return address.endsWith('/logout') ? logout() : who();
  });
  session = await import('../../../apps/control-plane/console/src/shell/session');
  client = await import('../../../apps/control-plane/console/src/live/client');
  who = user('ann', 'acme');
  logout = () => Response.json({});
});

describe('a session', () => {
  it('of another person or account loads the page again: what it has read is not theirs', async () => {
    await session.readMe();
    who = nobody;
    await session.readMe();
    expect(session.sessionEnded.value).toBe(true);
    for (const other of [user('bob', 'acme'), user('ann', 'umbrella')]) {
      reload.mockReset();
      who = other;
      await session.signIn('x', 'y');
      expect(reload).toHaveBeenCalledOnce();
    }
    expect(session.me.value?.id, 'nothing is drawn as theirs before').toBe('ann');
  });
  it('that goes on is no reason to load anything', async () => {
    await session.readMe();
    await session.readMe();
    expect(reload).not.toHaveBeenCalled();
  });
  it('that another page has begun again goes on here, too', async () => {
    await session.readMe();
    client.live.value = { state: 'live' };
    who = nobody;
    client.live.value = { state: 'signed-out' };
    client.receive('end', {});
    await settle();
    expect(session.sessionEnded.value).toBe(true);
    who = user('ann', 'acme');
    client.live.value = { state: 'live' };
    await settle();
    expect(session.sessionEnded.value).toBe(false);
  });
  it('that ended while the stream was away has ended with the refusal of the stream', async () => {
    await session.readMe();
    client.live.value = { state: 'lost', since: 1, retryAt: 2 };
    who = nobody;
    client.live.value = { state: 'signed-out' };
    await settle();
    expect(session.sessionEnded.value).toBe(true);
  });
  it('that another tab has begun again goes on when this one is shown, also without a stream', async () => {
    await session.readMe();
    who = nobody;
    await session.readMe();
    shown();
    await settle();
    expect(session.sessionEnded.value).toBe(true);
    who = user('ann', 'acme');
    shown();
    await settle();
    expect(session.sessionEnded.value).toBe(false);
  });
  it('that another page has begun as somebody else is noticed with the stream', async () => {
    await session.readMe();
    client.live.value = { state: 'live' };
    client.live.value = { state: 'lost', since: 1, retryAt: 2 };
    who = user('bob', 'umbrella');
    client.live.value = { state: 'live' };
    await settle();
    expect(reload).toHaveBeenCalledOnce();
  });
  it('that could not be ended goes on, and says so', async () => {
    await session.readMe();
    logout = () => { throw new TypeError('Failed to fetch'); };
    await session.signOut();
    expect(session.me.value?.id).toBe('ann');
    expect(session.signOutFailure.value).toMatchObject({ tried: 'sign out', kind: 'unreachable' });
    logout = () => Response.json({});
    await session.signOut();
    expect([session.me.value, session.signOutFailure.value]).toEqual([null, null]);
  });
});

describe('signing in', () => {
  it('with a right password is not called wrong when the browser drops the cookie', async () => {
    who = nobody;
    const failure = await session.signIn('ann', 'right').then(() => null, (thrown: { failure: { kind: string; message: string } }) => thrown.failure);
    expect(failure?.kind).not.toBe('signed-out');
    expect(failure?.message).toContain('cookie');
  });
  it('under an open page leads back to that page', () => {
    const at = (path: string, query: [string, string][]) => session.wayBack({ path, query: new Map(query) });
    expect(at('/applications/prod/argocd/shop/diff', [['node', 'apps:Deployment:web:ui']])).toBe('/applications/prod/argocd/shop/diff?node=apps:Deployment:web:ui');
    expect(at('/sign-in', [['to', '/runtimes/prod']])).toBe('/runtimes/prod');
    expect(at('/sign-in', [['to', '//evil.example']])).toBe('/');
    expect(at('/applications', [['to', '/elsewhere']])).toBe('/applications?to=/elsewhere');
  });
});
