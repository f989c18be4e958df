// Parts that the pages of access share.
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { onReset } from '../../live/client';
import { addKeys, type Key } from '../../shell/keys';
import { navigate, setQuery } from '../../shell/router';
import { me } from '../../shell/session';
import { Icon } from '../../ui/icons';
import { Empty } from '../../ui/parts';
import { sentenceOf, type Piece, type Rule, type Team } from './types';

export const TABS = [['users', 'Users'], ['teams', 'Teams'], ['service-accounts', 'Service accounts'], ['tokens', 'Tokens'], ['rules', 'Rules']] as const;
export type Tab = (typeof TABS)[number][0];

/** The title of a page, the way to the others, and its buttons. */
export function Head({ tab, count, children }: { tab: Tab; count?: number | undefined; children?: ComponentChildren }) {
  return (
    <>
      <header class="title">
        <h1>{TABS.find(([key]) => key === tab)![1]}</h1>
        {count !== undefined && <span class="mute">{count}</span>}
        <span class="grow" />
        {children}
      </header>
      <nav class="tabs" aria-label="Pages of access">
        {TABS.map(([key, title]) => <a key={key} href={`/access/${key}`} aria-current={tab === key ? 'page' : undefined}>{title}</a>)}
      </nav>
    </>
  );
}

/** What stands instead of a page that is the administrators'. */
export function NoAdministrator({ what, children }: { what: string; children?: ComponentChildren }) {
  return (
    <Empty title={`Only administrators manage the ${what}`}>
      <p>You are a user of the account {me.value?.account}, not an administrator, so its {what} are not shown here. Ask an administrator if something has to change.</p>
      {children ?? <p>What is yours: <a href="/access/tokens">your own tokens</a>, and <a href="/access/rules">what you may do on an application</a>.</p>}
    </Empty>
  );
}

/** Keys of a page of access. Reads again when the control plane says that rights have changed. */
export function usePageKeys(again: () => void, more: Key[] = []): void {
  useLayoutEffect(() => {
    const ends = [onReset(again), addKeys('Access', [
      ...TABS.map(([key, title], index) => ({ keys: String(index + 1), text: title, run: () => navigate(`/access/${key}`) })),
      ...more, { keys: 'r', text: 'Read again', run: again },
    ])];
    return () => ends.forEach((end) => end());
  }, []);
}

/** The panel of one row, beside the list. `parameter` names the row in the address. */
export function Side({ title, parameter, children }: { title: string; parameter: string; children: ComponentChildren }) {
  return (
    <aside class="side" aria-label={title}>
      <header><h2>{title}</h2><button type="button" class="quiet" aria-label="Close" onClick={() => setQuery({ [parameter]: '' })}><Icon name="close" /></button></header>
      {children}
    </aside>
  );
}

const PATIENCE = 1_000; // milliseconds; a row that was created a moment ago is read in this time
/** What is said when the address names a row that is not there. */
export function Gone({ what, parameter }: { what: string; parameter: string }) {
  const [isShown, show] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => show(true), PATIENCE);
    return () => clearTimeout(timer);
  }, []);
  if (!isShown) return null;
  return <p class="notice">This {what} is gone. <button type="button" onClick={() => setQuery({ [parameter]: '' })}>Dismiss</button></p>;
}

type Said = Pick<Rule, 'entityType' | 'teams' | 'actions' | 'attributes'>;
/** The sentence of a rule. While the teams are not known, their ids stand for them. */
export function piecesOf(rule: Said, teams: readonly Team[] | null): Piece[] {
  return sentenceOf(rule, (id) => (teams === null ? id : teams.find((team) => team._id === id)?.name));
}

export function Sentence({ rule, teams }: { rule: Said; teams: readonly Team[] | null }) {
  const pieces = piecesOf(rule, teams);
  return <span>{pieces.map((piece, index) => (typeof piece === 'string' ? piece : <strong key={index}>{piece.name}</strong>))}.</span>;
}

/** Boxes to choose from a list. */
export function Boxes({ title, items, chosen, set, note }: { title: string; items: readonly { value: string; text: string }[]; chosen: readonly string[]; set: (chosen: string[]) => void; note?: string }) {
  return (
    <fieldset class="boxes">
      <legend>{title}</legend>
      {items.length === 0 && <p class="mute">There are none.</p>}
      {items.map(({ value, text }) => (
        <label key={value} class="check">
          <input type="checkbox" checked={chosen.includes(value)} onChange={(event) => set(event.currentTarget.checked ? [...chosen, value] : chosen.filter((one) => one !== value))} />
          {text}
        </label>
      ))}
      {note && <p class="mute small">{note}</p>}
    </fieldset>
  );
}
