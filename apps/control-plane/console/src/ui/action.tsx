// Actions and what came of them.
import { useCallback, useRef, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { done, outcomeOf, type Outcome } from '../data/outcome';
import { failureOf } from '../data/request';
import { Icon, type IconName } from './icons';
import { Copy, Dialog } from './parts';

export interface Actions {
  busy: boolean;
  outcome: (Outcome & { at: string }) | null;
  /** Runs an action of the button at a place. Returns whether it is done; `says` is what is told then, `at` where. */
  run: (place: string, tried: string, work: () => Promise<unknown>, says: string | (() => string), at?: string) => Promise<boolean>;
  clear: () => void;
}

/** Runs one action at a time. `after` reads again what is shown; it is called whatever came of the action. */
export function useActions(after: () => void): Actions {
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<(Outcome & { at: string }) | null>(null);
  const isBusy = useRef(false);
  const run: Actions['run'] = async (place, tried, work, says, at = place) => {
    if (isBusy.current) return false;
    isBusy.current = true;
    setBusy(true);
    setOutcome(null);
    try {
      await work();
      setOutcome({ ...done(typeof says === 'string' ? says : says()), at });
      return true;
    } catch (error) {
      setOutcome({ ...outcomeOf(failureOf(tried, error)), at: place });
      return false;
    } finally {
      isBusy.current = false;
      setBusy(false);
      after();
    }
  };
  return { busy, outcome, run, clear: useCallback(() => setOutcome(null), []) };
}

const WORDS: Record<Outcome['kind'], { icon: IconName; tone: string; text: string }> = {
  done: { icon: 'tick', tone: 'ok', text: 'Done' },
  refused: { icon: 'cut', tone: 'warn', text: 'Refused' },
  failed: { icon: 'cross', tone: 'bad', text: 'Failed' },
  unknown: { icon: 'question', tone: 'warn', text: 'Unknown' },
};

/** What came of the action at this place, beside its button, until it is closed. */
export function Result({ actions, at }: { actions: Actions; at: string }) {
  const { outcome, clear } = actions;
  if (outcome?.at !== at) return null;
  const word = WORDS[outcome.kind];
  return (
    <div class={`outcome ${word.tone}`} role={outcome.kind === 'done' ? 'status' : 'alert'}>
      <span class={`state ${word.tone}`}><Icon name={word.icon} />{word.text}</span>
      <span class="said">{outcome.text}{outcome.requestId && <span class="mute small"> Request {outcome.requestId}</span>}</span>
      {outcome.kind !== 'done' && <Copy text={`${word.text}: ${outcome.text} ${outcome.requestId}`.trim()} />}
      <button type="button" class="quiet" aria-label="Dismiss" onClick={clear}><Icon name="close" size={12} /></button>
    </div>
  );
}

/** Asks before something is taken away. With `typed` its name has to be typed. Closes when it is done. */
export function Confirm({ title, verb, typed = '', close, actions, place, confirm, children }:
    { title: string; verb: string; typed?: string; close: () => void; actions: Actions; place: string; confirm: () => Promise<boolean>; children: ComponentChildren }) {
  const [text, setText] = useState('');
  const isAllowed = text === typed && !actions.busy;
  const send = async (event: Event) => {
    event.preventDefault();
    if (isAllowed && await confirm()) close();
  };
  return (
    <Dialog title={title} close={close}>
      <form class="fields" onSubmit={(event) => void send(event)}>
        <div>{children}</div>
        {typed && <label>Type {typed} to confirm<input value={text} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} /></label>}
        <div class="action">
          <button type="submit" class="danger" aria-disabled={!isAllowed} title={isAllowed || !typed ? undefined : 'Type the name first'}>{verb}</button>
          <Result actions={actions} at={place} />
        </div>
      </form>
    </Dialog>
  );
}
