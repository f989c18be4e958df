import { useState } from 'preact/hooks';

import { applications, pulse } from '../../store/state';
import { has, toggled, type Query } from '../../store/filter';
import { state } from '../../store/states';
import { Icon } from '../../ui/icons';
import { clusterName } from './columns';
import { counts } from './view';

interface Props {
  text: string;
  query: Query;
  me: string;
  set: (text: string) => void;
}
const STATES = [['health', 'Health'], ['sync', 'Sync'], ['op', 'Operation']] as const;
const LISTS = [['runtime', 'Runtime'], ['cluster', 'Cluster'], ['namespace', 'Namespace'], ['project', 'Project']] as const;
const MOST = 50;

/** Buttons that write terms into the filter, with the number of applications behind each. */
export function Facets({ text, query, me, set }: Props) {
  void pulse.value; // counts are live
  return (
    <div class="facets" role="group" aria-label="Facets">
      {STATES.map(([key, title]) => (
        <div key={key} class="facet" role="group" aria-label={title}>
          {[...counts(key, query, me)].sort((a, b) => state(b.value).severity - state(a.value).severity).map(({ value, count }) => (
            <button key={value} type="button" class="chip" aria-pressed={has(text, key, value)} onClick={() => set(toggled(text, key, value))}>
              <span class={`state ${state(value).tone}`}><Icon name={state(value).shape} />{value}</span><b>{count}</b>
            </button>
          ))}
        </div>
      ))}
      {LISTS.map(([key, title]) => <List key={key} of={key} title={title} text={text} query={query} me={me} set={set} />)}
    </div>
  );
}

/** A list counts its values while it is open: counting all of them takes longer than filtering. */
function List({ of: key, title, text, query, me, set }: Props & { of: (typeof LISTS)[number][0]; title: string }) {
  const [isOpen, setOpen] = useState(false);
  void pulse.value;
  if (!applications.columns[key].some((value) => value !== '')) return null;
  const chosen = query.terms.reduce((sum, term) => sum + (term.key === key && !term.negated ? term.values.length : 0), 0);
  const all = isOpen ? [...counts(key, query, me)].sort((a, b) => b.count - a.count) : [];
  return (
    <details class="menu" onToggle={(event) => setOpen(event.currentTarget.open)} onKeyDown={(event) => { if (event.key === 'Escape') { event.currentTarget.open = false; event.currentTarget.querySelector('summary')?.focus(); } }}>
      <summary class="chip">{title}{chosen > 0 && <b>{chosen}</b>}<Icon name="down" size={12} /></summary>
      <div class="pop list">
        {all.slice(0, MOST).map(({ value, count }) => (
          <label key={value} class="check">
            <input type="checkbox" checked={has(text, key, value)} onChange={() => set(toggled(text, key, value))} />
            <span class="clip grow">{clusterName(value)}</span><b>{count}</b>
          </label>
        ))}
        {all.length > MOST && <p class="mute small">{all.length - MOST} more: write {key}: into the filter.</p>}
      </div>
    </details>
  );
}
