// The actions of an Application: buttons that open panels, and what came of the last one.
import { useLayoutEffect, useRef } from 'preact/hooks';

import { addKeys } from '../../../shell/keys';
import { here, setQuery } from '../../../shell/router';
import { Result, useActions } from '../../../ui/action';
import { word } from '../../../store/states';
import type { Name } from '../links';
import type { ApplicationDetail, Release } from '../types';
import { Guarded } from './panel';
import { DeletePanel, PLACE, RefreshPanel, RollbackPanel, SyncPanel, TerminatePanel } from './panels';
import { ADMINISTRATORS, useRights } from './rights';

/** The open panel is in the address: `panel=`, and for a rollback `to=`, the deployment to go back to. It never acts by itself. */
type Panel = 'sync' | 'refresh' | 'rollback' | 'terminate' | 'delete';
function openPanel(panel: Panel, to = ''): void {
  setQuery({ panel, to }, { replace: false });
}
export function openRollback(entry: number): void {
  openPanel('rollback', String(entry));
}

export function ActionBar({ app, name, releases, after }: { app: ApplicationDetail; name: Name; releases: readonly Release[]; after: () => void }) {
  const actions = useActions(after);
  const whyNot = useRights(name);
  const show = (panel: Panel) => {
    actions.clear();
    openPanel(panel);
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
  const { query } = here.value;
  const mayNotDelete = whyNot(ADMINISTRATORS);
  const now = query.get('panel') ?? '';
  const isOpen = now === 'delete' || rows.some((row) => row.panel === now);
  const close = () => setQuery({ panel: '', to: '' });
  const panelOf = { name, app, actions, close, refused: now === 'delete' ? mayNotDelete : now === 'terminate' ? whyNot('TERMINATE_SYNC') : rows.find((row) => row.panel === now)?.whyNot ?? '' };
  return (
    <>
      <div class="actions" role="group" aria-label="Actions">
        {rows.map(({ panel, keys, text, whyNot: why }) => <span key={panel} data-action={panel}><Guarded text={text} keys={keys} whyNot={why} open={() => show(panel)} /></span>)}
        <span data-action="delete"><Guarded text="Delete…" danger whyNot={mayNotDelete} open={() => show('delete')} /></span>
      </div>
      {!isOpen && <Result actions={actions} at={PLACE} />}
      {now === 'sync' && <SyncPanel {...panelOf} />}
      {now === 'refresh' && <RefreshPanel {...panelOf} />}
      {now === 'terminate' && <TerminatePanel {...panelOf} />}
      {now === 'rollback' && <RollbackPanel {...panelOf} releases={releases} wanted={query.get('to') ? Number(query.get('to')) : null} />}
      {now === 'delete' && <DeletePanel {...panelOf} />}
    </>
  );
}
