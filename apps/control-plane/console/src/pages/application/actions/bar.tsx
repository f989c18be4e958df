// The actions of an Application: buttons that open panels, and what came of the last one.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';

import { addKeys } from '../../../shell/keys';
import { Result, useActions } from '../../../ui/action';
import { word } from '../../../store/states';
import { pathOf, type Name } from '../links';
import type { ApplicationDetail, Release } from '../types';
import { Guarded } from './panel';
import { DeletePanel, PLACE, RefreshPanel, RollbackPanel, SyncPanel, TerminatePanel } from './panels';
import { ADMINISTRATORS, useRights } from './rights';

interface Open {
  panel: 'sync' | 'refresh' | 'rollback' | 'terminate' | 'delete';
  of: string; // path of the Application
  entry: number; // the deployment to go back to; 0: none is chosen
}
/** The open panel. The timeline opens that of a rollback. */
const open = signal<Open | null>(null);
export function openRollback(name: Name, entry: number): void {
  open.value = { panel: 'rollback', of: pathOf(name), entry };
}

export function ActionBar({ app, name, releases, after }: { app: ApplicationDetail; name: Name; releases: readonly Release[]; after: () => void }) {
  const actions = useActions(after);
  const whyNot = useRights(name);
  const path = pathOf(name);
  const show = (panel: Open['panel']) => {
    actions.clear();
    open.value = { panel, of: path, entry: 0 };
  };
  const phase = app.operation?.phase ? word(app.operation.phase) : '';
  const isRunning = phase === 'Running' || phase === 'Terminating';
  const rows = [
    { panel: 'sync', keys: 's', text: 'Sync…', whyNot: whyNot('SYNC') },
    { panel: 'refresh', keys: 'r', text: 'Refresh…', whyNot: whyNot('REFRESH') },
    { panel: 'rollback', keys: 'b', text: 'Roll back…', whyNot: whyNot('APP_ROLLBACK') },
    { panel: 'terminate', keys: 't', text: 'Terminate…', whyNot: whyNot('TERMINATE_SYNC') || (isRunning ? '' : 'No operation is in progress.') },
  ] as const;
  // Keys act on what is shown, also when they are faster than effects.
  const shown = useRef({ rows, show });
  shown.current = { rows, show };
  useLayoutEffect(() => addKeys('Actions', rows.map(({ panel, keys, text }) => ({ keys, text, run: () => {
    const row = shown.current.rows.find((one) => one.panel === panel)!;
    if (!row.whyNot) shown.current.show(panel);
    else {
      const button = document.querySelector<HTMLElement>(`.actions [data-action="${panel}"] button`);
      button?.focus();
      button?.click();
    }
  } }))), []);
  const now = open.value?.of === path ? open.value : null;
  const close = () => { open.value = null; };
  const panelOf = { name, app, actions, close };
  return (
    <>
      <div class="actions" role="group" aria-label="Actions">
        {rows.map(({ panel, keys, text, whyNot: why }) => <span key={panel} data-action={panel}><Guarded text={text} keys={keys} whyNot={why} open={() => show(panel)} /></span>)}
        <span data-action="delete"><Guarded text="Delete…" danger whyNot={whyNot(ADMINISTRATORS)} open={() => show('delete')} /></span>
      </div>
      {!now && <Result actions={actions} at={PLACE} />}
      {now?.panel === 'sync' && <SyncPanel {...panelOf} />}
      {now?.panel === 'refresh' && <RefreshPanel {...panelOf} />}
      {now?.panel === 'terminate' && <TerminatePanel {...panelOf} />}
      {now?.panel === 'rollback' && <RollbackPanel {...panelOf} releases={releases} wanted={now.entry} />}
      {now?.panel === 'delete' && <DeletePanel {...panelOf} />}
    </>
  );
}
