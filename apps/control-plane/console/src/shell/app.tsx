import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useErrorBoundary, useLayoutEffect } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { keepApplications } from '../data/load';
import type { Failure } from '../data/request';
import { live, retryNow, staleSince } from '../live/client';
import { startAddress } from '../pages/applications/saved';
import { InvitationPage } from '../pages/signin/invitation';
import { SignInForm, SignInPage } from '../pages/signin/signin';
import { Icon } from '../ui/icons';
import { lazy } from '../ui/lazy';
import { copyText, Dialog, Empty, Failed, Loading, RequestId } from '../ui/parts';
import { clock, pageClock } from '../ui/time';
import { announce, announcement } from './announce';
import { addKeys, setSingleKeys, shownKeys, singleKeys } from './keys';
import { Palette } from './palette';
import { PAGES } from './pages';
import { herePath, match, navigate } from './router';
import { askMe, me, meFailure, OPEN_PAGES, readMe, sessionEnded, signOut, signOutFailure } from './session';
import { nextTheme, theme } from './theme';

/** A page that fails takes neither the shell nor the other pages with it. */
function Guarded({ children }: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  const path = herePath.value;
  useEffect(() => { if (error) reset(); }, [path]); // another application is another try
  if (!error) return <>{children}</>;
  return <Failed retry={reset} failure={{ tried: 'show this page', kind: 'failed', status: 0, requestId: '', message: String(error) }} />;
}

function Page() {
  const path = herePath.value;
  if (path === '/') {
    navigate(startAddress(), { replace: true });
    return null;
  }
  for (const row of PAGES) {
    const parameters = match(row.pattern, path);
    if (!parameters) continue;
    document.title = `${row.title(parameters)} · GitOps console`;
    const key = row.pattern.startsWith('/applications/') ? '/applications/:' : row.pattern.replace('/*page', '');
    return <Guarded key={key}><row.page parameters={parameters} /></Guarded>;
  }
  document.title = 'No such page · GitOps console';
  return <Empty title="There is no such page"><p><a href="/applications">Go to the applications</a></p></Empty>;
}

const LOST_AFTER = 25_000;

/** What stands above every page: that it does not change by itself any more, or that nothing new is known. */
function Strip() {
  const state = live.value;
  const time = useSignal(Date.now());
  useEffect(() => {
    if (state.state !== 'lost') return undefined;
    const tick = () => (time.value = Date.now());
    tick();
    const timer = setInterval(tick, 1_000);
    return () => clearInterval(timer);
  }, [state]);
  const isLost = state.state === 'lost' && time.value - state.since > LOST_AFTER;
  const isStale = staleSince.value > 0;
  const told = isLost ? `Live updates stopped at ${pageClock(state.since)}.` : isStale ? `The control plane has had no fresh data since ${clock(staleSince.value)}.` : '';
  useEffect(() => { if (told) announce(told); }, [told]);
  if (state.state === 'lost' && isLost) {
    const seconds = Math.max(0, Math.ceil((state.retryAt - time.value) / 1_000));
    return (
      <div class="strip warn">
        <Icon name="cut" />
        <span>{told} Trying again{seconds > 0 ? ` in ${seconds} s` : ''}.</span>
        <button type="button" onClick={retryNow}>Now</button>
      </div>
    );
  }
  return isStale ? <div class="strip warn"><Icon name="clock" /><span>{told}</span></div> : null;
}

function LiveState() {
  const texts = {
    connecting: ['clock', 'mute', 'Connecting'], live: ['tick', 'ok', 'Live'], 'signed-out': ['cut', 'mute', 'Signed out'],
    lost: ['cut', 'warn', 'Reconnecting'], unavailable: ['clock', 'mute', 'Read every 15 s'],
  } as const;
  const [icon, tone, text] = texts[live.value.state];
  const title = live.value.state === 'unavailable' ? 'Live updates are not available. The page reads its data every 15 seconds.' : undefined;
  return <span class={`state small ${tone}`} title={title}><Icon name={icon} /><span class="wide">{text}</span></span>;
}

const SheetFinder = lazy<{ close: () => void }>('the search', async () => (await import('../pages/help/finder')).SheetFinder);

function HelpSheet({ close }: { close: () => void }) {
  return (
    <Dialog title="Help" close={close}>
      <SheetFinder close={close} />
      <p class="small"><a href="/help" onClick={close}>All documents</a></p>
      <div class="sheet">
        {shownKeys.value.map((scope) => (
          <section key={scope.title}>
            <h3>{scope.title}</h3>
            <dl>
              {scope.keys.map((key) => (
                <div key={key.keys}>
                  <dt>{key.keys.split(' ').map((one) => <kbd key={one}>{one}</kbd>)}</dt>
                  <dd>{key.text}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <label class="check">
        <input type="checkbox" checked={singleKeys.value} onChange={(event) => setSingleKeys(event.currentTarget.checked)} />
        Single keys act (off: only those with Ctrl)
      </label>
    </Dialog>
  );
}

function Navigation({ open, close }: { open: boolean; close: () => void }) {
  const path = herePath.value;
  return (
    <nav class={open ? 'nav open' : 'nav'} aria-label="Pages" onClick={(event) => { if ((event.target as Element).closest('a')) close(); }}>
      <a class="brand" href="/applications"><img src="/icon.svg" alt="" width="20" height="20" /><span class="label">GitOps console</span></a>
      <ul>
        {PAGES.map((row) => row.menu && (!row.menu.onlyAdmin || me.value?.isAdmin) && (
          <li key={row.pattern}>
            <a href={row.pattern} title={row.menu.text} aria-current={path === row.pattern || path.startsWith(`${row.pattern}/`) ? 'page' : undefined}>
              <Icon name={row.menu.icon} /><span class="label">{row.menu.text}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function UserMenu() {
  const user = me.value;
  if (!user) return null;
  return (
    <details class="menu right" onKeyDown={(event) => { if (event.key === 'Escape') event.currentTarget.open = false; }}>
      <summary title={`Signed in as ${user.name}`}><Icon name="user" /><span class="wide clip">{user.name}</span></summary>
      <div class="pop">
        <p><strong>{user.name}</strong><br /><span class="mute">{user.email}</span></p>
        <p class="mute small">Account {user.account}{user.isAdmin ? ' · administrator' : ''}</p>
        <button type="button" onClick={() => void signOut()}>Sign out</button>
      </div>
    </details>
  );
}

/** Signing out did not succeed, from wherever it was asked for. */
function StillSignedIn({ failure }: { failure: Failure }) {
  return (
    <div class="strip warn" role="alert">
      <Icon name="warning" />
      <span>You are still signed in. {failure.message} <RequestId id={failure.requestId} /></span>
      <button type="button" onClick={() => void signOut()}>Sign out</button>
      <button type="button" class="quiet" aria-label="Dismiss" onClick={() => (signOutFailure.value = null)}><Icon name="close" size={12} /></button>
    </div>
  );
}

function SessionEnded() {
  return (
    <Dialog title="Your session has ended" close={() => {}} canClose={false}>
      <p>Sign in again to go on. The page behind stays as it is.</p>
      <SignInForm done={() => (sessionEnded.value = false)} name={me.value?.name ?? ''} isOver />
    </Dialog>
  );
}

/** The page with everything around it. */
function Shell() {
  const drawer = useSignal(false);
  const palette = useSignal(false);
  const sheet = useSignal(false);
  // On every page: the palette finds applications, and the stream tells whether it lives.
  useLayoutEffect(keepApplications, []);
  useLayoutEffect(() => addKeys('Everywhere', [
    { keys: 'Ctrl K', text: 'Go to, filter, find', run: () => (palette.value = !palette.value) },
    { keys: '?', text: 'Help: keys, and search in the documents', run: () => (sheet.value = true) },
    ...PAGES.flatMap((row) => (row.menu ? [{ keys: row.menu.key, text: row.menu.text, run: () => navigate(row.pattern) }] : [])),
    { keys: 'y', text: 'Copy the address of this view', run: () => void copyText(location.href).then((isDone) => announce(isDone ? 'The address is copied' : 'The browser does not let the page copy')) },
    { keys: 'm', text: 'Next theme', run: nextTheme },
  ]), []);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the content</a>
      <Navigation open={drawer.value} close={() => (drawer.value = false)} />
      <header class="top">
        <button type="button" class="quiet drawer" aria-label="Pages" aria-expanded={drawer.value} onClick={() => (drawer.value = !drawer.value)}><Icon name="menu" /></button>
        <button type="button" class="find" onClick={() => (palette.value = true)}><Icon name="search" /><span>Go to or find</span><kbd class="wide">Ctrl K</kbd></button>
        <span class="grow" />
        <LiveState />
        <button type="button" class="quiet" title={`Theme: ${theme.value}`} aria-label={`Theme: ${theme.value}. Change`} onClick={nextTheme}><Icon name="theme" /></button>
        <button type="button" class="quiet wide" title="Help and keys (?)" aria-label="Help and keys" onClick={() => (sheet.value = true)}><Icon name="question" /></button>
        <UserMenu />
      </header>
      {signOutFailure.value ? <StillSignedIn failure={signOutFailure.value} /> : <Strip />}
      <main id="main" tabIndex={-1}><Page /></main>
      {palette.value && <Palette close={() => (palette.value = false)} />}
      {sheet.value && <HelpSheet close={() => (sheet.value = false)} />}
      {sessionEnded.value && <SessionEnded />}
      <div class="sr" aria-live="polite">{announcement.value}</div>
    </div>
  );
}

export function App() {
  // These pages need no session.
  const isOpen = useComputed(() => OPEN_PAGES.includes(herePath.value));
  useEffect(() => { if (!isOpen.value) void askMe(); }, [isOpen.value]);
  if (isOpen.value) return herePath.value === '/invitation' ? <InvitationPage /> : <SignInPage />;
  if (me.value) return <Shell />;
  if (meFailure.value && meFailure.value.kind !== 'signed-out') {
    return <main class="alone"><Failed failure={meFailure.value} retry={() => void readMe()} /></main>;
  }
  return <main class="alone"><Loading what="the console" rows={3} /></main>;
}
