import { batch, useSignalEffect } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ComponentProps } from 'preact';

import { serverNow } from '../../data/clock';
import { readApplications } from '../../data/load';
import { announce } from '../../shell/announce';
import { addKeys } from '../../shell/keys';
import { address, here, navigate, setQuery } from '../../shell/router';
import { me } from '../../shell/session';
import type { ApplicationRow, Sort } from '../../store/applications';
import { narrowest, without } from '../../store/filter';
import { applications, loadState, offline, pulse, readings } from '../../store/state';
import { HelpLink } from '../../ui/help_link';
import { lazy } from '../../ui/lazy';
import { Copy, Empty, Failed, Loading } from '../../ui/parts';
import { pageClock } from '../../ui/time';
import { applicationPath, COLUMNS, columnsOf } from './columns';
import { Facets } from './facets';
import { FilterField } from './filter_field';
import { Table } from './table';
import { formOf, nextForm, Tools } from './tools';
import type { ListProps } from './use_row';
import { arrange, countWaiting, fields, listAddress, view, waiting } from './view';

const Cards = lazy<ListProps>('the cards', async () => (await import('./cards')).Cards);
const Tiles = lazy<ListProps & { by: 'runtime' | 'cluster' }>('the tiles', async () => (await import('./tiles')).Tiles);
const cursor = { at: 0 };
/** The rows that are chosen, while another page is shown: somebody looks at one of them and comes back. */
const kept: { rows: ReadonlySet<number> } = { rows: new Set() };

/** "health" or "-changedAt". A column that does not exist is the default's. */
export function sortOf(text: string | undefined): Sort {
  const down = text?.startsWith('-') === true;
  const key = (down ? text!.slice(1) : text) as keyof ApplicationRow;
  return COLUMNS.some((column) => column.key === key) ? { key, down } : { key: 'health', down: false };
}

function NothingMatches({ text, set }: { text: string; set: (text: string) => void }) {
  const query = view.value!.query;
  const rows = Array.from({ length: applications.length }, (_, row) => row).filter((row) => !applications.isGone(row));
  const best = narrowest(query, fields(me.value?.name ?? ''), rows, serverNow());
  return (
    <Empty title="Nothing matches">
      <p>None of the {applications.size} applications matches this filter.</p>
      {best && <p><button type="button" onClick={() => set(without(text, best.term.text))}><span>Drop <code>{best.term.text}</code>: {best.matches} match</span></button></p>}
      <p><button type="button" onClick={() => set('')}>Clear the filter</button></p>
    </Empty>
  );
}

function NothingExists() {
  return (
    <Empty title="No applications yet">
      <p>An application appears here as soon as a runtime reports it. <a href="/runtimes">The page of the runtimes</a> shows which there are, and how to add one.</p>
      <p>Is there a runtime, but its Argo CD has no application yet? <HelpLink help="quickstart application">How to make the first one</HelpLink></p>
      <p class="mute">If your account has runtimes with applications, a rule may keep you from seeing them. Ask an administrator.</p>
    </Empty>
  );
}

function Waiting({ apply }: { apply: () => void }) {
  const { changes, added } = waiting.value;
  if (changes + added === 0) return null;
  const parts = [changes > 0 ? `${changes} ${changes === 1 ? 'row' : 'rows'} changed place` : '', added > 0 ? `${added} new` : ''];
  return <button type="button" class="waiting" onClick={apply}>Apply: {parts.filter(Boolean).join(', ')}<kbd>.</kbd></button>;
}

type BatchProps = ComponentProps<typeof import('./batch').Batch>;
const Batch = lazy<BatchProps>('the actions', async () => (await import('./batch')).Batch);
const BATCHES = [['sync', 'Sync…'], ['refresh', 'Refresh…'], ['terminate', 'Terminate…']] as const;

interface ChosenProps {
  chosen: ReadonlySet<number>;
  shown: readonly number[]; // the rows that match the filter
  set: (rows: ReadonlySet<number>) => void;
}

/** How many rows are chosen, and what can be done with them. */
function Chosen({ chosen, shown, set }: ChosenProps) {
  const [batch, setBatch] = useState<Pick<BatchProps, 'action' | 'items'> | null>(null);
  if (chosen.size === 0) return null;
  const inside = shown.reduce((sum, row) => sum + (chosen.has(row) ? 1 : 0), 0);
  const there = () => [...chosen].filter((row) => !applications.isGone(row)).map((row) => applications.at(row)).sort((a, b) => (a.name < b.name ? -1 : 1));
  const names = () => there().map(({ name }) => name).join('\n');
  const show = (action: BatchProps['action']) => setBatch({ action, items: there().map(({ runtime, namespace, name }) => ({ runtime, namespace, name })) });
  return (
    <span class="chosen-count">
      {chosen.size} chosen{inside < chosen.size && `, ${chosen.size - inside} of them outside of the filter`}
      {inside < shown.length && <button type="button" class="quiet" onClick={() => set(new Set([...chosen, ...shown]))}>All {shown.length} that match</button>}
      {BATCHES.map(([action, title]) => <button key={action} type="button" class="quiet" onClick={() => show(action)}>{title}</button>)}
      <Copy text={names} label={chosen.size === 1 ? 'Copy the name' : 'Copy the names'} />
      <button type="button" class="quiet" onClick={() => set(new Set())}>Clear</button>
      {batch && <Batch {...batch} close={() => setBatch(null)} />}
    </span>
  );
}

/** Rows that are chosen, by keys and pointer. */
function useChoice() {
  const [chosen, set] = useState(kept.rows);
  const setChosen = (rows: ReadonlySet<number>) => {
    kept.rows = rows;
    set(rows);
  };
  const anchor = useRef<number | null>(null);
  const choose = (order: readonly number[], index: number, range: boolean) => {
    const next = new Set(chosen);
    const start = range && anchor.current !== null ? order.indexOf(anchor.current) : index;
    const begin = start < 0 ? index : start;
    for (const row of order.slice(Math.min(begin, index), Math.max(begin, index) + 1)) {
      if (range || !next.has(row)) next.add(row);
      else next.delete(row);
    }
    anchor.current = order[index] ?? null;
    setChosen(next);
    announce(`${next.size} chosen`);
  };
  return { chosen, setChosen, choose };
}

export function ApplicationsPage() {
  const { query } = here.value;
  const text = query.get('q') ?? '';
  const sort = sortOf(query.get('sort'));
  const user = me.value?.name ?? '';
  const field = useRef<HTMLInputElement>(null);
  const { chosen, setChosen, choose } = useChoice();
  const form = formOf(query.get('as'));
  const columns = useMemo(() => columnsOf(query.get('cols')), [query.get('cols')]);
  const { state, at, failure } = loadState.value;

  const apply = () => arrange(text, sort, user);
  const typed = useRef<string | null>(null); // what `set` has arranged
  useEffect(() => {
    if (typed.current !== text) apply();
    typed.current = null;
  }, [text, sort.key, sort.down, user]);
  useLayoutEffect(() => { listAddress.value = address('/applications', query); }, [query]);
  // A reading brings new rows: they wait like those of the stream, except for the first.
  useSignalEffect(() => {
    void readings.value;
    const shown = view.peek();
    if (!shown || shown.rows.length === 0 || document.activeElement?.closest('.filter')) arrange(text, sort, user);
  });
  useSignalEffect(() => {
    void pulse.value;
    void offline.value;
    countWaiting(user);
  });
  const focusGrid = () => document.querySelector<HTMLElement>('[data-list]')?.focus();
  useLayoutEffect(() => addKeys('Applications', [
    { keys: '/', text: 'Filter', run: () => field.current?.focus() },
    { keys: 'j', text: 'Next row (or ↓)', run: focusGrid },
    { keys: 'k', text: 'Row before (or ↑)', run: focusGrid },
    { keys: 'Enter', text: 'Open', run: focusGrid },
    { keys: 'x', text: 'Choose', run: focusGrid },
    { keys: 'X', text: 'Choose from the last one to here', run: focusGrid },
    { keys: 'v', text: 'Next form: table, cards, tiles', run: nextForm },
    { keys: '.', text: 'Apply waiting changes', run: () => { const { text: now, sort: by } = view.peek()!; arrange(now, by, user); } },
    { keys: 'r', text: 'Read again', run: () => void readApplications() },
  ]), [user]);

  const set = (next: string) => {
    cursor.at = 0;
    typed.current = next;
    // Both at once: a key draws the page once.
    batch(() => {
      setQuery({ q: next });
      arrange(next, sort, user);
    });
  };
  const shown = view.value;
  const list: ListProps = { rows: shown?.rows ?? [], open: (row) => navigate(applicationPath(applications.at(row))), cursor, chosen, choose };
  const isFirst = at === 0 && state !== 'failed';
  return (
    <div class="fill">
      <header class="title">
        <h1>Applications</h1>
        <span class="mute" data-count>{isFirst ? '' : shown && shown.rows.length !== applications.size ? `${shown.rows.length} of ${applications.size}` : applications.size}</span>
        <Chosen chosen={chosen} shown={shown?.rows ?? []} set={setChosen} />
        <span class="grow" />
        <Waiting apply={apply} />
        {offline.value.size > 0 && <a class="state warn small" href="/runtimes">{offline.value.size === 1 ? '1 runtime is silent: its' : `${offline.value.size} runtimes are silent: their`} rows show their age</a>}
        {at > 0 && <span class="mute small wide">Read {pageClock(at)}</span>}
      </header>
      <div class="filter-line">
        <FilterField text={text} set={set} query={shown?.query ?? { terms: [], notes: [] }} me={user} field={field} leave={focusGrid} />
        <Tools form={form} columns={columns} />
      </div>
      {shown && at > 0 && <Facets text={text} query={shown.query} me={user} set={set} />}
      {failure && <Failed failure={failure} retry={() => void readApplications()} />}
      {isFirst && <Loading what="applications" rows={12} />}
      {at > 0 && applications.size === 0 && <NothingExists />}
      {at > 0 && applications.size > 0 && shown && shown.rows.length === 0 && <NothingMatches text={text} set={set} />}
      {at > 0 && shown && shown.rows.length > 0 && <>
        {form === 'table' && <Table {...list} name={`${text} ${sort.key} ${String(sort.down)}`} columns={columns} sort={sort} setSort={(next) => setQuery({ sort: `${next.down ? '-' : ''}${next.key}` })} />}
        {form === 'cards' && <Cards {...list} />}
        {form === 'tiles' && <Tiles {...list} by={query.get('by') === 'cluster' ? 'cluster' : 'runtime'} />}
      </>}
    </div>
  );
}
