// Actions and what came of them.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { done, OutcomeError, outcomeOf, type Outcome } from '../data/outcome';
import { failureOf } from '../data/request';
import { HelpLink } from './help_link';
import { Icon, type IconName } from './icons';
import { Copy, Dialog } from './parts';

/** Looks whether an action whose answer was lost has happened. Returns what was found, or nothing yet. */
export type FindOut = () => Promise<string | null>;
const LOOKS = 20;
const BETWEEN = 3_000; // milliseconds

interface Shown extends Outcome {
  at: string; // the button
  found?: string; // what was found out after a lost answer
}

export interface Actions {
  busy: boolean;
  outcome: Shown | null;
  /** The results that are on the page, by place. */
  places: Map<string, number>;
  /** Runs an action of the button at a place. Returns whether it is done; `says` is what is told then, `at` where. What
   * was not done is told at the place, or where that is not on the page any more, since a dialog was closed, at `at`. After a
   * lost answer `found` is asked again and again. */
  run: (place: string, tried: string, work: () => Promise<unknown>, says: string | (() => string), at?: string, found?: FindOut) => Promise<boolean>;
  clear: () => void;
}

/** Runs one action at a time. `after` reads again what is shown; it is called whatever came of the action. */
export function useActions(after: () => void): Actions {
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Shown | null>(null);
  const isBusy = useRef(false);
  const round = useRef(0);
  const places = useRef(new Map<string, number>()).current;
  useEffect(() => () => { ++round.current; }, []);
  const findOut = async (own: number, found: FindOut) => {
    const tell = (text: string) => setOutcome((old) => old && round.current === own ? { ...old, found: text } : old);
    tell('Looking what happened…');
    for (let look = 0; look < LOOKS && round.current === own; ++look) {
      const text = await found().catch(() => null);
      if (text) return tell(text);
      await new Promise((resolve) => setTimeout(resolve, BETWEEN));
    }
    tell('Nothing was found in a minute that it could have done.');
  };
  const run: Actions['run'] = async (place, tried, work, says, at = place, found) => {
    if (isBusy.current) return false;
    isBusy.current = true;
    const own = ++round.current;
    setBusy(true);
    setOutcome(null);
    try {
      await work();
      setOutcome({ ...done(typeof says === 'string' ? says : says()), at });
      return true;
    } catch (error) {
      const outcome = error instanceof OutcomeError ? error.outcome : outcomeOf(failureOf(tried, error));
      setOutcome({ ...outcome, at: places.get(place) ? place : at });
      if (outcome.kind === 'unknown' && found) void findOut(own, found);
      return false;
    } finally {
      isBusy.current = false;
      setBusy(false);
      after();
    }
  };
  const clear = useCallback(() => {
    ++round.current;
    setOutcome(null);
  }, []);
  return { busy, outcome, places, run, clear };
}

const WORDS: Record<Outcome['kind'], { icon: IconName; tone: string; text: string }> = {
  done: { icon: 'tick', tone: 'ok', text: 'Done' },
  refused: { icon: 'cut', tone: 'warn', text: 'Refused' },
  failed: { icon: 'cross', tone: 'bad', text: 'Failed' },
  unknown: { icon: 'question', tone: 'warn', text: 'Unknown' },
};

/** What came of an action, as one text. */
export function saidBy({ by, text, allows }: Outcome): string {
  return [by ? `${by}: ${text}` : text, allows].filter(Boolean).join(' ');
}

/** What came of the action at this place, beside its button, until it is closed. */
export function Result({ actions, at }: { actions: Actions; at: string }) {
  const { outcome, places, clear } = actions;
  useLayoutEffect(() => {
    places.set(at, (places.get(at) ?? 0) + 1);
    return () => void places.set(at, places.get(at)! - 1);
  }, [places, at]);
  if (outcome?.at !== at) return null;
  const word = WORDS[outcome.kind];
  return (
    <div class={`outcome ${word.tone}`} role={outcome.kind === 'done' ? 'status' : 'alert'}>
      <span class={`state ${word.tone}`}><Icon name={word.icon} />{word.text}</span>
      <span class="said">{saidBy(outcome)}{outcome.found && <strong> {outcome.found}</strong>}{outcome.requestId && <span class="mute small"> Request {outcome.requestId}</span>}{outcome.help && <> <HelpLink help={outcome.help} /></>}</span>
      {outcome.isOutdated && <button type="button" onClick={() => location.reload()}>Load again</button>}
      {outcome.kind !== 'done' && <Copy text={`${word.text}: ${saidBy(outcome)} ${outcome.requestId}`.trim()} />}
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
