import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

import { failureOf, type Failure } from '../../data/request';
import { here } from '../../shell/router';
import { signIn, signInWays, wayBack, type SignInWays } from '../../shell/session';
import { Icon } from '../../ui/icons';
import { RequestId } from '../../ui/parts';
import { signInError } from './errors';

/** What a failed sign-in says. A wrong name and a wrong password look alike. */
export function sentence(failure: Failure): string {
  if (failure.kind === 'signed-out') return 'The name or the password is wrong.';
  if (failure.status === 429) return `Too many attempts. ${failure.message}`;
  return failure.message;
}

/** `isOver` a page that has to stay: an identity provider then gets a tab of its own. */
export function SignInForm({ done, name = '', isOver = false }: { done: () => void; name?: string; isOver?: boolean }) {
  const ways = useSignal<SignInWays | null>(null);
  const wrong = useSignal<Failure | null>(null);
  const busy = useSignal(false);
  const first = useRef<HTMLInputElement>(null);
  const second = useRef<HTMLInputElement>(null);
  useEffect(() => {
    void signInWays().then((read) => (ways.value = read));
    (name ? second : first).current?.focus();
  }, []);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    busy.value = true;
    wrong.value = null;
    try {
      await signIn(String(form.get('name')), String(form.get('password')));
      done();
    } catch (error) {
      wrong.value = failureOf('sign in', error);
      second.current?.select();
    } finally {
      busy.value = false;
    }
  };
  const { providers, password } = ways.value ?? { providers: [], password: true };
  const to = wayBack(here.value);
  return (
    <>
      {providers.map((provider) => (
        <a key={provider.name} class="button wide-field" {...(isOver && { target: '_blank', rel: 'noopener' })} href={`${provider.path}${provider.path.includes('?') ? '&' : '?'}to=${encodeURIComponent(to)}`}>
          Sign in with {provider.title}
        </a>
      ))}
      {providers.length > 0 && isOver && <p class="mute small">It opens another tab. This page goes on when you are signed in there.</p>}
      {providers.length > 0 && password && <p class="or mute small"><span>or</span></p>}
      {password && (
        <form class="fields" onSubmit={(event) => void send(event as unknown as SubmitEvent)}>
          <label>Name<input ref={first} name="name" autocomplete="username" required defaultValue={name} autocapitalize="off" spellcheck={false} /></label>
          <label>Password<input ref={second} name="password" type="password" autocomplete="current-password" required /></label>
          {wrong.value && <p class="bad state" role="alert"><Icon name="warning" /><span>{sentence(wrong.value)} <RequestId id={wrong.value.requestId} /></span></p>}
          <button type="submit" class="primary" disabled={busy.value}>{busy.value ? 'Signing in' : 'Sign in'}</button>
        </form>
      )}
    </>
  );
}

export function SignInPage() {
  const to = wayBack(here.value);
  const error = signInError(here.value.query.get('error'));
  useEffect(() => {
    document.title = 'Sign in · GitOps console';
  }, []);
  return (
    <main class="alone sign-in">
      <h1><img src="/icon.svg" alt="" width="28" height="28" />GitOps console</h1>
      {to !== '/' && <p class="mute">Sign in to open <code>{to}</code></p>}
      {error && <p class="bad state" role="alert"><Icon name="warning" /><span>{error}</span></p>}
      {/* The page is loaded anew: its policy names the runtimes of who is signed in. */}
      <SignInForm done={() => location.replace(to)} />
    </main>
  );
}
