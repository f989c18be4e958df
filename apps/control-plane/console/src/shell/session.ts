// Who I am. A token never reaches this code: the session is a cookie that scripts cannot read.
import { effect, signal } from '@preact/signals';

import { ME } from '../data/documents';
import { failureOf, query, request, RequestError, whenSignedOut, type Failure } from '../data/request';
import { live, retryNow, whenStreamEnds } from '../live/client';
import { address, here, navigate, ownAddress, type Place } from './router';

export interface Me {
  id: string;
  name: string;
  email: string;
  isAdmin: boolean;
  account: string;
  accountId: string;
}

export const me = signal<Me | null>(null);
/** Why `me` is not known; null while it is being read. */
export const meFailure = signal<Failure | null>(null);
/** Why the last attempt to sign out did not succeed. */
export const signOutFailure = signal<Failure | null>(null);
/** The session ended under an open page, which stays as it is. */
export const sessionEnded = signal(false);

interface MeAnswer {
  me: { id: string; name: string; email: string | null; isAdmin: boolean | null; activeAccount: { id: string; name: string; admins: string[] } };
}

export async function readMe(): Promise<void> {
  meFailure.value = null;
  try {
    const { me: user } = await query<MeAnswer>('read who you are', ME);
    const { activeAccount } = user;
    const before = me.peek();
    // What the page has read is that of another one.
    if (before && (before.id !== user.id || before.accountId !== activeAccount.id)) return location.reload();
    me.value = {
      id: user.id, name: user.name, email: user.email ?? '', account: activeAccount.name, accountId: activeAccount.id,
      isAdmin: user.isAdmin === true || activeAccount.admins.includes(user.id),
    };
    if (sessionEnded.peek() && live.peek().state !== 'live') retryNow();
    sessionEnded.value = false;
  } catch (error) {
    meFailure.value = failureOf('read who you are', error);
  }
}

let isAsking = false;
/** Reads who I am, unless that is known or on its way. */
export async function askMe(): Promise<void> {
  if (me.peek() || isAsking) return;
  isAsking = true;
  await readMe().finally(() => (isAsking = false));
}

export interface Provider {
  name: string;
  title: string;
  path: string;
}
export interface SignInWays {
  password: boolean;
  providers: Provider[];
}

/** Reads how one may sign in. A server that does not say takes passwords. */
export async function signInWays(): Promise<SignInWays> {
  try {
    const ways = await request<SignInWays>('read how to sign in', '/console/api/v1/sign-in');
    return { password: ways.password, providers: ways.providers.filter((one) => one.path.startsWith('/')) };
  } catch {
    return { password: true, providers: [] };
  }
}

export async function signIn(name: string, password: string): Promise<void> {
  await request('sign in', '/console/api/v1/login', { method: 'POST', body: { name, password } });
  await readMe();
  const failure = meFailure.peek();
  if (failure?.kind === 'signed-out') {
    throw new RequestError({ ...failure, kind: 'failed', message: 'The name and the password are right, but your browser does not send the cookie of the session. It keeps it only for an address with https, or for localhost.' });
  }
  if (failure) throw new RequestError(failure);
}

/** Ends the session, or says in `signOutFailure` that it goes on. */
export async function signOut(): Promise<void> {
  signOutFailure.value = null;
  let endSession: string | undefined;
  try {
    ({ endSession } = await request<{ endSession?: string }>('sign out', '/console/api/v1/logout', { method: 'POST', body: {} }));
  } catch (error) {
    signOutFailure.value = failureOf('sign out', error);
    return;
  }
  me.value = null;
  sessionEnded.value = false;
  // The identity provider has a session of its own.
  if (endSession && /^https?:/.test(endSession)) {
    location.assign(endSession);
    return;
  }
  navigate('/sign-in');
}

whenStreamEnds(() => void readMe());
// While the stream was away, another page may have signed in: again, or as somebody else.
let wasLive: boolean | undefined;
effect(() => {
  const { state } = live.value;
  const isLive = state === 'live';
  // A stream that is refused is the first to tell that the session has ended.
  if (((isLive && wasLive === false) || state === 'signed-out') && me.peek()) void readMe();
  if (isLive || wasLive) wasLive = isLive;
});

// Without a stream this page looks when it is shown: another tab may have signed in.
globalThis.document?.addEventListener?.('visibilitychange', () => { if (sessionEnded.peek() && !document.hidden) void readMe(); });

/** Pages that need no session. */
export const OPEN_PAGES = ['/sign-in', '/invitation'];

/** Where to go after signing in at a place: to the place itself, or where the page for it was opened from. */
export function wayBack({ path, query: parameters }: Place): string {
  return ownAddress(OPEN_PAGES.includes(path) ? parameters.get('to') : address(path, parameters));
}

whenSignedOut(() => {
  const { path, query: parameters } = here.peek();
  if (OPEN_PAGES.includes(path)) return;
  if (me.peek()) sessionEnded.value = true;
  else navigate(`/sign-in?to=${encodeURIComponent(address(path, parameters))}`, { replace: true });
});
