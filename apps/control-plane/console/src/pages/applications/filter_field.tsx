import { useEffect, useRef, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

import { announce } from '../../shell/announce';
import { FILTER_KEYS } from '../../store/applications';
import type { Query } from '../../store/filter';
import { Icon } from '../../ui/icons';
import { clusterName } from './columns';
import { counts } from './view';

interface Suggestion {
  insert: string; // what replaces the word at the caret
  text: string;
  hint: string;
}
const MOST = 10;
const COUNTED = ['health', 'sync', 'op', 'runtime', 'cluster', 'namespace', 'project'];
const FIXED: Record<string, string[]> = {
  is: ['failing', 'drifted', 'offline', 'gone'], auto: ['on', 'off'], changed: ['<1h', '<1d', '>7d'], age: ['<1h', '>1d'], by: ['me'],
};
const HINTS: Record<string, string> = {
  name: 'part of the name', health: 'Degraded, Progressing …', sync: 'OutOfSync, Synced …', op: 'the last operation', is: 'failing, drifted, offline',
  changed: '<1h', age: 'of the last report', rev: 'begin of a revision', by: 'author of the commit', label: 'key=value', auto: 'on, off',
};

/** Returns what may stand for the word at the caret. */
export function suggestions(word: string, query: Query, me: string): Suggestion[] {
  const minus = word.startsWith('-') ? '-' : '';
  const body = word.slice(minus.length).toLowerCase();
  const colon = body.indexOf(':');
  if (colon < 0) {
    return FILTER_KEYS.filter((key) => key.startsWith(body)).slice(0, MOST)
      .map((key) => ({ insert: `${minus}${key}:`, text: `${minus}${key}:`, hint: HINTS[key] ?? '' }));
  }
  const key = body.slice(0, colon);
  const start = body.slice(body.lastIndexOf(',') + 1).replace(`${key}:`, '');
  const before = word.slice(0, word.length - start.length);
  if (FIXED[key]) return FIXED[key]!.filter((value) => value.startsWith(start)).map((value) => ({ insert: `${before}${value} `, text: value, hint: '' }));
  if (!COUNTED.includes(key)) return [];
  return counts(key, query, me).filter(({ value }) => [value, clusterName(value)].some((one) => one.toLowerCase().startsWith(start))).sort((a, b) => b.count - a.count).slice(0, MOST)
    .map(({ value, count }) => ({ insert: `${before}${/[\s,]/.test(value) ? `"${value}"` : value} `, text: clusterName(value), hint: String(count) }));
}

interface Props {
  text: string;
  set: (text: string) => void;
  query: Query;
  me: string;
  field: RefObject<HTMLInputElement | null>;
  leave: () => void;
}

/** The filter: a combobox whose text is the query, so that there is one truth. */
export function FilterField({ text, set, query, me, field, leave }: Props) {
  const [open, setOpen] = useState(false);
  const notes = query.notes.join(' ');
  useEffect(() => { if (notes) announce(notes); }, [notes]);
  const [at, setAt] = useState(-1);
  const caret = useRef(0);
  const start = text.slice(0, caret.current).search(/\S*$/);
  const word = text.slice(start, caret.current);
  // A word that is complete has nothing to suggest.
  const list = open ? suggestions(word, query, me).filter((one) => one.insert.trim().toLowerCase() !== word.toLowerCase()) : [];
  const take = (one: Suggestion) => {
    const next = text.slice(0, start) + one.insert + text.slice(caret.current).trimStart();
    caret.current = start + one.insert.length;
    set(next);
    setAt(-1);
    field.current?.focus();
  };
  const key = (event: KeyboardEvent) => {
    if (event.isComposing) return; // the keys are those of an input method
    if (event.key === 'ArrowDown' && list.length > 0) setAt((at + 1) % list.length);
    else if (event.key === 'ArrowUp' && list.length > 0) setAt(at > 0 ? at - 1 : list.length - 1);
    else if (event.key === 'Enter' && at >= 0 && list[at]) take(list[at]!);
    else if (event.key === 'Enter') leave();
    else if (event.key === 'Escape' && open) setOpen(false);
    else if (event.key === 'Escape') leave();
    else return;
    event.preventDefault();
  };
  const input = (event: { currentTarget: HTMLInputElement }) => {
    caret.current = event.currentTarget.selectionStart ?? event.currentTarget.value.length;
    setOpen(true);
    setAt(-1);
    if (event.currentTarget.value !== text) set(event.currentTarget.value);
  };
  return (
    <div class="filter">
      <Icon name="search" />
      <input ref={field} type="text" role="combobox" aria-label="Filter" aria-expanded={list.length > 0} aria-controls="suggestions" aria-autocomplete="list"
        aria-activedescendant={at >= 0 ? `suggestion-${at}` : undefined} aria-describedby="filter-notes"
        placeholder="Filter: name, health:degraded, -runtime:dev, changed:<1h" spellcheck={false} autocomplete="off" value={text}
        onInput={input} onFocus={input} onClick={input} onBlur={() => setOpen(false)} onKeyDown={key} />
      {text && <button type="button" class="quiet" aria-label="Clear the filter" onClick={() => { set(''); field.current?.focus(); }}><Icon name="close" /></button>}
      <ul id="suggestions" role="listbox" aria-label="Suggestions" class="options pop" hidden={list.length === 0}>
        {list.map((one, index) => (
          <li key={one.text} id={`suggestion-${index}`} role="option" aria-selected={index === at} onMouseDown={(event) => { event.preventDefault(); take(one); }}>
            <span class="clip grow">{one.text}</span><span class="mute small">{one.hint}</span>
          </li>
        ))}
      </ul>
      <p id="filter-notes" class="notes small warn">{notes}</p>
    </div>
  );
}
