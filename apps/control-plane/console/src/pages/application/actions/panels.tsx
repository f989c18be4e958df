// The panels of an Application's actions. Each reads the live state first: it says what will happen, and that the runtime can be reached.
import { useEffect, useMemo, useState } from 'preact/hooks';

import { changeRuntime, readRuntime } from '../../../data/runtime';
import { DELETE_APPLICATION, LIVE_STATE, REFRESH, ROLLBACK, SYNC, TERMINATE } from '../../../data/runtime_documents';
import { here, isOf, setQuery } from '../../../shell/router';
import { word } from '../../../store/states';
import type { Actions } from '../../../ui/action';
import { Facts, Failed, Loading, Revision } from '../../../ui/parts';
import { useReading, type Reading } from '../../../ui/read';
import { Age, exact, milliseconds } from '../../../ui/time';
import { pathOf, type Name } from '../links';
import type { ApplicationDetail, Release } from '../types';
import { begunSince, choices, chosenOf, endedOperation, firstTarget, idOf, isAutomated, newOperation, previewOf, previewText, running, starter, targetsOf, type LiveResource, type LiveState } from './operations';
import { Panel } from './panel';

export const PLACE = 'action'; // of the results: beside the button of the open panel, or else beside those of the page

export interface PanelOf {
  name: Name;
  app: ApplicationDetail;
  actions: Actions;
  close: () => void;
  refused: string; // why this user may not; a panel can be opened by its address
}

export const namesOf = ({ name, namespace }: Name) => ({ name, namespace });

export function readState(name: Name, signal?: AbortSignal): Promise<LiveState> {
  return readRuntime<LiveState>('read the live state', name.runtime, LIVE_STATE, namesOf(name), signal);
}
function useLiveState(name: Name): Reading<LiveState> {
  return useReading(`live ${pathOf(name)}`, 'read the live state', (signal) => readState(name, signal));
}

/** Reads the state again when something was not done: another operation may be in the way. */
async function orLookAgain(sent: Promise<boolean>, reading: Reading<LiveState>): Promise<boolean> {
  const isDone = await sent;
  if (!isDone) reading.again();
  return isDone;
}

/** What is in progress refuses the next operation. */
function busyText(state: LiveState | null): string {
  const operation = running(state);
  return operation ? `Another operation is in progress: by ${starter(operation)} since ${exact(milliseconds(operation.startedAt))}. Wait until it has ended, or terminate it.` : '';
}

function State({ reading }: { reading: Reading<LiveState> }) {
  if (reading.failure) return <Failed failure={reading.failure} retry={reading.again} />;
  if (!reading.value) return <Loading what="the live state" rows={2} />;
  return null;
}
/** Why nothing can be done while the live state is not there. */
function withoutState(reading: Reading<LiveState>): string {
  if (reading.value) return '';
  return reading.failure ? 'Its state could not be read from the runtime, so nothing is sent.' : 'Its state is being read from the runtime.';
}

const LOOKS = 10;
const BETWEEN = 1_000; // milliseconds
/** Puts the operation that has begun into the address, as soon as Argo CD has it; not if somebody has gone elsewhere meanwhile. */
async function showOperation(name: Name, before: LiveState | null): Promise<void> {
  const isHere = () => isOf(here.peek().path, pathOf(name));
  for (let look = 0; look < LOOKS && isHere(); ++look) {
    const op = await readState(name).then((after) => begunSince(before, after), () => '');
    if (op && isHere()) return setQuery({ op });
    await new Promise((resolve) => setTimeout(resolve, BETWEEN));
  }
}

const MOST_SHOWN = 200;
const PLENTY = 12;
/** Objects to choose from. Null: all of them. */
function Objects({ all, chosen, choose }: { all: readonly LiveResource[]; chosen: ReadonlySet<string> | null; choose: (ids: ReadonlySet<string> | null) => void }) {
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const fitting = all.filter(({ kind, name }) => `${kind} ${name}`.toLowerCase().includes(wanted));
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    choose(next);
  };
  return (
    <fieldset class="boxes rows">
      <legend>Objects</legend>
      <label class="check"><input type="radio" name="objects" checked={!chosen} onChange={() => choose(null)} />All</label>
      <label class="check"><input type="radio" name="objects" checked={chosen !== null} onChange={() => choose(new Set())} />Only some{chosen && `: ${chosen.size} of ${all.length}`}</label>
      {chosen && all.length > PLENTY && <input type="text" aria-label="Look for objects" placeholder="Look for objects" value={text} onInput={(event) => setText(event.currentTarget.value)} />}
      {chosen && (
        <ul class="batch" tabIndex={0} aria-label="Objects to sync">
          {fitting.slice(0, MOST_SHOWN).map((one) => (
            <li key={idOf(one)}><label class="check"><input type="checkbox" checked={chosen.has(idOf(one))} onChange={() => toggle(idOf(one))} /><span class="clip grow">{one.kind} {one.name}{one.namespace && <span class="mute"> {one.namespace}</span>}</span><span class="mute small">{one.requiresPruning ? 'not in Git' : word(one.status)}</span></label></li>
          ))}
        </ul>
      )}
      {chosen && fitting.length > MOST_SHOWN && <p class="mute small">{fitting.length - MOST_SHOWN} more: look for them.</p>}
      {chosen && <p class="mute small">Argo CD runs no hooks then, and records no deployment that can be rolled back to.</p>}
    </fieldset>
  );
}

export function SyncPanel({ name, app, actions, close, refused }: PanelOf) {
  const reading = useLiveState(name);
  const [revision, setRevision] = useState('');
  const [prune, setPrune] = useState(false);
  const [dryRun, setDryRun] = useState(false);
  const state = reading.value;
  const [chosen, choose] = useState<ReadonlySet<string> | null>(null);
  const resources = state?.applicationProxyQuery?.status.resources ?? null;
  const all = useMemo(() => choices(resources ?? []), [resources]);
  const preview = useMemo(() => previewOf(chosen ? all.filter((one) => chosen.has(idOf(one))) : resources, prune), [resources, chosen, prune]);
  const wanted = state?.applicationProxyQuery?.status.sync?.revision ?? app.revision;
  const deletes = dryRun ? 0 : preview?.deletes.length ?? 0;
  const isEmpty = chosen?.size === 0;
  const options = { prune, dryRun, ...(revision.trim() && { revision: revision.trim() }), ...(chosen && { resources: chosenOf(all, chosen) }) };
  const send = () => orLookAgain(actions.run(PLACE, 'sync', () => changeRuntime(name.runtime, SYNC, { ...namesOf(name), options }),
    dryRun ? 'Argo CD tries the sync and changes nothing. The result is that of the last sync, above.' : 'Argo CD has begun the sync. It goes on when this page is closed; the timeline has its result.', PLACE,
    async () => newOperation(state, await readState(name))), reading);
  const act = async () => {
    const isDone = await send();
    if (isDone) void showOperation(name, state);
    return isDone;
  };
  return (
    <Panel title={`Sync ${name.name}`} verb={dryRun ? 'Dry run' : 'Sync'} danger={deletes > 0} typed={deletes > 0 ? name.name : ''} whyNot={refused || withoutState(reading) || busyText(state) || (isEmpty ? 'Choose at least one object.' : '')} close={close} actions={actions} place={PLACE} act={act}>
      <State reading={reading} />
      {state && (
        <>
          <p class="preview">{revision.trim() ? `What changes at ${revision.trim()} is not known before. A dry run tells.` : previewText(preview)}</p>
          <p class="mute small">{revision.trim() ? '' : <>At <Revision value={wanted} />, as Argo CD has compared it. </>}{isAutomated(state) && 'Automated sync is on: it will come back to what Git wants.'}</p>
        </>
      )}
      <label>Revision<input value={revision} placeholder={app.specSource?.targetRevision || 'the wanted one'} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => setRevision(event.currentTarget.value)} /></label>
      {all.length > 1 && <Objects all={all} chosen={chosen} choose={choose} />}
      <label class="check"><input type="checkbox" checked={prune} onChange={(event) => setPrune(event.currentTarget.checked)} />Delete what is not in Git any more (prune)</label>
      <label class="check"><input type="checkbox" checked={dryRun} onChange={(event) => setDryRun(event.currentTarget.checked)} />Dry run: try it, change nothing</label>
    </Panel>
  );
}

export function RefreshPanel({ name, actions, close, refused }: PanelOf) {
  const [isHard, setHard] = useState(false);
  const act = () => actions.run(PLACE, 'refresh', () => changeRuntime(name.runtime, REFRESH, { ...namesOf(name), options: { refresh: isHard ? 'hard' : 'normal' } }), 'Argo CD has compared it again.');
  return (
    <Panel title={`Refresh ${name.name}`} verb="Refresh" whyNot={refused} close={close} actions={actions} place={PLACE} act={act}>
      <p>Argo CD compares the cluster with Git again. Nothing is deployed, unless automated sync is on and finds a difference.</p>
      <label class="check"><input type="checkbox" checked={isHard} onChange={(event) => setHard(event.currentTarget.checked)} />Hard: make the manifests anew, without the cache</label>
    </Panel>
  );
}

export function TerminatePanel({ name, actions, close, refused }: PanelOf) {
  const reading = useLiveState(name);
  const operation = running(reading.value);
  let isOver = false;
  const act = () => actions.run(PLACE, 'terminate the operation', async () => {
    const { terminateApplicationOperation: answer } = await changeRuntime<{ terminateApplicationOperation: { terminated: boolean | null } | null }>(name.runtime, TERMINATE, namesOf(name));
    isOver = !answer?.terminated;
  }, () => (isOver ? 'No operation was in progress any more. Nothing was changed.' : 'Argo CD ends the operation. What it has applied so far stays.'), PLACE, async () => endedOperation(reading.value, await readState(name)));
  return (
    <Panel title={`Terminate the operation of ${name.name}`} verb="Terminate" danger whyNot={refused || withoutState(reading) || (operation ? '' : 'No operation is in progress.')} close={close} actions={actions} place={PLACE} act={act}>
      <State reading={reading} />
      {operation && <Facts facts={[['Phase', operation.phase], ['Begun', <Age at={operation.startedAt} ago />], ['By', starter(operation)], ['Message', operation.message]]} />}
      {operation && <p>Argo CD stops it. What it has applied so far stays as it is.</p>}
    </Panel>
  );
}

export function RollbackPanel({ name, actions, close, refused, releases, wanted }: PanelOf & { releases: readonly Release[]; wanted: number | null }) {
  const reading = useLiveState(name);
  const targets = targetsOf(releases);
  const first = firstTarget(targets, wanted);
  const [chosen, choose] = useState(first);
  // A panel that is opened by its address is there before the deployments are.
  useEffect(() => { if (chosen === undefined) choose(first); }, [first]);
  const [prune, setPrune] = useState(false);
  const release = targets.find((one) => one.historyId === chosen);
  const commit = release?.application.status;
  const why = refused || withoutState(reading) || (targets.length === 0 ? 'There is no earlier deployment to go back to.' : release ? '' : 'Choose a deployment.')
    || (isAutomated(reading.value) ? 'Automated sync is on, so a rollback would be undone at once. Revert the commit in Git, or switch automated sync off there first.' : '') || busyText(reading.value);
  const act = () => orLookAgain(actions.run(PLACE, 'roll back', () => changeRuntime(name.runtime, ROLLBACK, { ...namesOf(name), historyId: chosen, prune }),
    `Argo CD goes back to deployment no. ${chosen}. The application is OutOfSync then, since Git wants another revision.`, PLACE, async () => newOperation(reading.value, await readState(name))), reading);
  return (
    <Panel title={`Roll back ${name.name}`} verb="Roll back" danger={prune} typed={prune ? name.name : ''} whyNot={why} close={close} actions={actions} place={PLACE} act={act}>
      <State reading={reading} />
      {targets.length > 0 && (
        <label>To<select value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
          {targets.map((one) => <option key={one.historyId} value={one.historyId}>no. {one.historyId} · {(one.syncOperationRevision || one.application.revision || '').slice(0, 7)} · {one.application.status?.commitMessage?.split('\n')[0] ?? 'message not known'}</option>)}
        </select></label>
      )}
      {release && <Facts facts={[['Revision', <Revision value={release.syncOperationRevision || release.application.revision} />], ['Author', commit?.commitAuthor], ['Message', commit?.commitMessage], ['Deployed', <Age at={commit?.syncFinishedAt ?? release.operationState?.finishedAt} ago />]]} />}
      <label class="check"><input type="checkbox" checked={prune} onChange={(event) => setPrune(event.currentTarget.checked)} />Delete what that deployment did not have (prune)</label>
    </Panel>
  );
}

export function DeletePanel({ name, app, actions, close, refused }: PanelOf) {
  const [cascade, setCascade] = useState(true);
  const count = app.resources?.length;
  const act = () => actions.run(PLACE, 'delete the application', () => changeRuntime(name.runtime, DELETE_APPLICATION, { ...namesOf(name), cascade }),
    cascade ? 'Argo CD deletes the application and its objects. It is gone when they are.' : 'Argo CD deletes the application. Its objects stay in the cluster.');
  return (
    <Panel title={`Delete ${name.name}`} verb="Delete" danger typed={name.name} whyNot={refused} close={close} actions={actions} place={PLACE} act={act}>
      <p>{cascade ? `Deletes the application${count === undefined ? ' and all its objects in the cluster' : ` and its ${count} ${count === 1 ? 'object' : 'objects'} in the cluster`}.` : 'Deletes the application. Its objects stay in the cluster, and nothing follows Git for them any more.'}</p>
      <p class="mute small">If a Git source or another application makes it, it comes back. Remove it from Git then.</p>
      <label class="check"><input type="checkbox" checked={cascade} onChange={(event) => setCascade(event.currentTarget.checked)} />Delete its objects, too (cascade)</label>
    </Panel>
  );
}
