// The parts that panels of actions share.
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { Icon, type IconName } from '../../../ui/icons';
import { Result, type Actions } from '../../../ui/action';
import { Dialog } from '../../../ui/parts';

/** A button that stays visible and says why it does nothing when `whyNot` has a text. */
export function Guarded({ text, icon, keys, whyNot, danger = false, open }: { text: string; icon?: IconName; keys?: string; whyNot: string; danger?: boolean; open: () => void }) {
  const id = useId();
  const [isTold, tell] = useState(false);
  return (
    <>
      <button type="button" class={danger ? 'danger' : undefined} aria-disabled={whyNot ? true : undefined} aria-describedby={whyNot ? id : undefined} title={whyNot || undefined}
        onClick={() => { if (whyNot) tell(!isTold); else open(); }}>
        {icon && <Icon name={icon} />}{text}{keys && <kbd class="wide">{keys}</kbd>}
      </button>
      {whyNot && <span id={id} class={isTold ? 'why-not small' : 'sr'} role={isTold ? 'status' : undefined}>{whyNot}</span>}
    </>
  );
}

/** A dialog with what will happen, and the one button that does it. With `typed` that text has to be typed. */
export function Panel({ title, verb, danger = false, typed = '', whyNot = '', close, actions, place, act, children }:
    { title: string; verb: string; danger?: boolean; typed?: string; whyNot?: string; close: () => void; actions: Actions; place: string; act: () => Promise<boolean>; children: ComponentChildren }) {
  const [text, setText] = useState('');
  const id = useId();
  const reason = whyNot || (typed && text !== typed ? `Type ${typed} first.` : '');
  const isShown = useRef(true); // it may be closed, and another one opened, before the answer comes
  useEffect(() => () => { isShown.current = false; }, []);
  const send = async (event: Event) => {
    event.preventDefault();
    if (!reason && !actions.busy && await act() && isShown.current) close();
  };
  return (
    <Dialog title={title} close={close}>
      <form class="fields" onSubmit={(event) => void send(event)}>
        {children}
        {typed && <label>Type {typed} to confirm<input value={text} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} /></label>}
        {whyNot && <p class="notice" id={id}><span>{whyNot}</span></p>}
        <div class="action">
          <button type="submit" class={danger ? 'danger' : 'primary'} aria-disabled={reason || actions.busy ? true : undefined} aria-describedby={whyNot ? id : undefined} title={reason || undefined}>{actions.busy ? 'Sending' : verb}</button>
          <button type="button" onClick={close}>Cancel</button>
          <Result actions={actions} at={place} />
        </div>
      </form>
    </Dialog>
  );
}
