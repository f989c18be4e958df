// Small parts that pages share. None of them knows a page.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import type { Failure } from '../data/request';
import { announce } from '../shell/announce';
import { HelpLink } from './help_link';
import { Icon } from './icons';

/** A field whose text counts once it is taken, by Enter or by leaving it. What is typed until then stays when the page is drawn anew. */
export function Field({ value, take, ...rest }: { value: string; take: (value: string) => void; class?: string; list?: string; placeholder?: string }) {
  const [typed, setTyped] = useState(value);
  useLayoutEffect(() => setTyped(value), [value]);
  return <input {...(rest as object)} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} onChange={(event) => take(event.currentTarget.value)} />;
}

/** Copies a text. Returns whether the browser did it: a page that came without TLS has no clipboard at all. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** A button that copies a text and says so. */
export function Copy({ text, label = 'Copy' }: { text: string | (() => string); label?: string }) {
  const [done, setDone] = useState('');
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(''), 2_000);
    return () => clearTimeout(timer);
  }, [done]);
  const say = (outcome: string) => {
    setDone(outcome);
    announce(outcome);
  };
  const copy = async () => say(await copyText(typeof text === 'string' ? text : text()) ? 'Copied' : 'Not allowed');
  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      <Icon name="copy" />
      <span>{done || label}</span>
    </button>
  );
}

/** A command with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <pre tabIndex={0} aria-label="Command">{text}</pre>
      <Copy text={text} />
    </div>
  );
}

const KINDS = {
  'signed-out': 'You are not signed in',
  refused: 'Refused',
  failed: 'Failed',
  unreachable: 'No answer',
} as const;

/** The id by which a server logs a request, to copy; nothing without one. */
export function RequestId({ id }: { id: string }) {
  return id ? <span class="request-id small">Request <code>{id}</code><Copy text={id} label="Copy the id" /></span> : null;
}

/** What was tried, what is known, and a way on. */
export function Failed({ failure, retry }: { failure: Failure; retry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <Icon name="warning" />
      <div>
        <strong>{KINDS[failure.kind]}: could not {failure.tried}.</strong>
        <p>{failure.message}</p>
        {(failure.status > 0 || failure.help) && <p class="about mute small">{failure.status > 0 && <span>Status {failure.status}</span>}<RequestId id={failure.requestId} />{failure.help && <HelpLink help={failure.help} />}</p>}
      </div>
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

/** The three kinds of empty differ by their title: nothing exists, nothing matches, not allowed to see. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Grey bars, after 200 ms, so that what loads fast does not flicker. */
export function Loading({ what, rows = 6 }: { what: string; rows?: number }) {
  return (
    <div class="loading" aria-busy="true">
      <span class="sr">Loading {what}</span>
      {Array.from({ length: rows }, (_, row) => <div key={row} class="grey" />)}
    </div>
  );
}

/** A native modal dialog: focus stays inside, Escape closes it. */
export function Dialog({ title, close, children, canClose = true }:
    { title: string; close: () => void; children: ComponentChildren; canClose?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  const isPressed = useRef(false); // outside of its content; a text may be selected from inside to there
  useLayoutEffect(() => {
    const shown = dialog.current!;
    shown.showModal();
    return () => {
      isGone.current = true; // the event of this comes when another dialog may be open
      shown.close(); // the focus goes back to where it was
    };
  }, []);
  // Escape twice closes a dialog in Chromium, whatever is said against it.
  const closed = () => {
    if (isGone.current) return;
    if (canClose) close();
    else dialog.current?.showModal();
  };
  return (
    <dialog ref={dialog} aria-label={title} onClose={closed} onCancel={(event) => { if (!canClose) event.preventDefault(); }}
      onMouseDown={(event) => { isPressed.current = event.target === dialog.current; }}
      onClick={(event) => { if (canClose && isPressed.current && event.target === dialog.current) dialog.current?.close(); }}>
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          {canClose && <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}><Icon name="close" /></button>}
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Term and description, as rows. Empty ones are left out. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value !== '' && value !== false && value !== null && value !== undefined).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A revision: seven characters, the whole one on hover and by the button. Versions of charts are shown as they are. */
export function Revision({ value }: { value: string | null | undefined }) {
  if (!value) return <span class="mute">–</span>;
  const short = /^[0-9a-f]{40,64}$/i.test(value) ? value.slice(0, 7) : value;
  return <code title={value}>{short}</code>;
}
