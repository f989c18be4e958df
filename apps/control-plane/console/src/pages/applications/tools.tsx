// The controls beside the filter: form, columns and saved views.
import { useState } from 'preact/hooks';

import { address, here, setQuery } from '../../shell/router';
import { Icon } from '../../ui/icons';
import { COLUMNS, toggledColumn, type Column } from './columns';
import { addressOf, changeViews, MOST_VIEWS, savedViews, withStart, withView } from './saved';

export const FORMS = ['table', 'cards', 'tiles'] as const;
export type Form = (typeof FORMS)[number];
export function formOf(text: string | undefined): Form {
  return FORMS.find((form) => form === text) ?? 'table';
}
export function setForm(form: Form): void {
  setQuery({ as: form === 'table' ? '' : form });
}
export function nextForm(): void {
  setForm(FORMS[(FORMS.indexOf(formOf(here.peek().query.get('as'))) + 1) % FORMS.length]!);
}

function closeByEscape(event: KeyboardEvent & { currentTarget: HTMLDetailsElement }): void {
  if (event.key !== 'Escape') return;
  event.currentTarget.open = false;
  event.currentTarget.querySelector('summary')?.focus();
  event.stopPropagation();
}

function Columns({ columns }: { columns: readonly Column[] }) {
  return (
    <details class="menu right" onKeyDown={closeByEscape}>
      <summary class="chip">Columns<Icon name="down" size={12} /></summary>
      <div class="pop list">
        {COLUMNS.map((column) => (
          <label key={column.key} class="check">
            <input type="checkbox" checked={columns.includes(column)} disabled={column.key === 'name'} onChange={() => setQuery({ cols: toggledColumn(columns, column.key) })} />
            {column.title}
          </label>
        ))}
      </div>
    </details>
  );
}

function Views() {
  const [name, setName] = useState('');
  const views = savedViews.value;
  const query = address('', here.value.query).replace(/^\?/, '');
  const isFull = name.trim() !== '' && views.length >= MOST_VIEWS && !views.some((one) => one.name === name.trim());
  const save = (event: Event) => {
    event.preventDefault();
    if (name.trim() === '' || isFull) return;
    changeViews((all) => withView(all, name.trim(), query));
    setName('');
  };
  return (
    <details class="menu right" onKeyDown={closeByEscape}>
      <summary class="chip">Views{views.length > 0 && <b>{views.length}</b>}<Icon name="down" size={12} /></summary>
      <div class="pop views">
        {views.map((one) => (
          <div key={one.name} class="saved-view">
            <a class="clip grow" href={addressOf(one)} aria-current={one.query === query ? 'page' : undefined}>{one.name}</a>
            <button type="button" class="quiet small" aria-pressed={one.isStart} onClick={() => changeViews((all) => withStart(all, one.name))}>{one.isStart ? 'Start page' : 'Make start page'}</button>
            <button type="button" class="quiet" aria-label={`Delete the view ${one.name}`} onClick={() => changeViews((all) => all.filter(({ name: other }) => other !== one.name))}><Icon name="close" /></button>
          </div>
        ))}
        <form onSubmit={save}>
          <input aria-label="Name of the view" placeholder="Name of this view" maxLength={60} value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <button type="submit">Save</button>
        </form>
        {isFull && <p class="warn small" role="status">More than {MOST_VIEWS} views are not kept. Delete one first.</p>}
        <p class="mute small">Filter, order, columns and form. Kept in this browser.</p>
      </div>
    </details>
  );
}

export function Tools({ form, columns }: { form: Form; columns: readonly Column[] }) {
  const grouped = here.value.query.get('by') === 'cluster' ? 'cluster' : 'runtime';
  return (
    <div class="tools">
      {form === 'tiles' && (
        <label class="mute small">Group by <select value={grouped} onChange={(event) => setQuery({ by: event.currentTarget.value === 'cluster' ? 'cluster' : '' })}><option value="runtime">runtime</option><option value="cluster">cluster</option></select></label>
      )}
      <div class="facet" role="group" aria-label="Form">
        {FORMS.map((one) => <button key={one} type="button" class="chip" aria-pressed={one === form} title="Next form: v" onClick={() => setForm(one)}>{one.charAt(0).toUpperCase() + one.slice(1)}</button>)}
      </div>
      {form === 'table' && <Columns columns={columns} />}
      <Views />
    </div>
  );
}
