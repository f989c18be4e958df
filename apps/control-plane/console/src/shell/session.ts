// Who I am. A token never reaches this code: the session is a cookie that scripts cannot read.
import { signal } from '@preact/signals';

import { ME } from '../data/documents';
import { failureOf, query, request, whenSignedOut, type Failure } from '../data/request';
import { retryNow, whenStreamEnds } from '../live/client';
import { address, here, navigate } from './router';

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
    me.value = {
      id: user.id, name: user.name, email: user.email ?? '', account: activeAccount.name, accountId: activeAccount.id,
      isAdmin: user.isAdmin === true || activeAccount.admins.includes(user.id),
    };
    if (sessionEnded.peek()) retryNow();
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
}

export async function signOut(): Promise<void> {
  const { endSession } = await request<{ endSession?: string }>('sign out', '/console/api/v1/logout', { method: 'POST', body: {} });
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

/** Pages that need no session. */
export const OPEN_PAGES = ['/sign-in', '/invitation'];

whenSignedOut(() => {
  const { path, query: parameters } = here.peek();
  if (OPEN_PAGES.includes(path)) return;
  if (me.peek()) sessionEnded.value = true;
  else navigate(`/sign-in?to=${encodeURIComponent(address(path, parameters))}`, { replace: true });
});
