// The panels of an Application's actions. Each reads the live state first: it says what will happen, and that the runtime can be reached.
import { useEffect, useMemo, useState } from 'preact/hooks';

import { changeRuntime, readRuntime } from '../../../data/runtime';
import { DELETE_APPLICATION, LIVE_STATE, REFRESH, ROLLBACK, SYNC, TERMINATE } from '../../../data/runtime_documents';
import { sessionEnded } from '../../../shell/session';
import type { Actions } from '../../../ui/action';
import { Facts, Failed, Loading, Revision } from '../../../ui/parts';
import { useReading, type Reading } from '../../../ui/read';
import { Age, exact, milliseconds } from '../../../ui/time';
import { pathOf, type Name } from '../links';
import type { ApplicationDetail, Release } from '../types';
import { endedOperation, isAutomated, newOperation, previewOf, previewText, running, starter, type LiveState } from './operations';
import { Panel } from './panel';

export const PLACE = 'action'; // of the results: beside the button of the open panel, or else beside those of the page

export interface PanelOf {
  name: Name;
  app: ApplicationDetail;
  actions: Actions;
  close: () => void;
}

export const namesOf = ({ name, namespace }: Name) => ({ name, namespace });

export function readState(name: Name, signal?: AbortSignal): Promise<LiveState> {
  return readRuntime<LiveState>('read the live state', name.runtime, LIVE_STATE, namesOf(name), signal);
}
function useLiveState(name: Name): Reading<LiveState> {
  const reading = useReading(`live ${pathOf(name)}`, 'read the live state', (signal) => readState(name, signal));
  const isEnded = sessionEnded.value;
  useEffect(() => {
    if (!isEnded && reading.failure?.kind === 'signed-out') reading.again();
  }, [isEnded]);
  return reading;
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

export function SyncPanel({ name, app, actions, close }: PanelOf) {
  const reading = useLiveState(name);
  const [revision, setRevision] = useState('');
  const [prune, setPrune] = useState(false);
  const [dryRun, setDryRun] = useState(false);
  const state = reading.value;
  const preview = useMemo(() => previewOf(state?.applicationProxyQuery?.status.resources ?? null, prune), [state, prune]);
  const wanted = state?.applicationProxyQuery?.status.sync?.revision ?? app.revision;
  const deletes = dryRun ? 0 : preview?.deletes.length ?? 0;
  const act = () => orLookAgain(actions.run(PLACE, 'sync', () => changeRuntime(name.runtime, SYNC, { ...namesOf(name), options: { prune, dryRun, ...(revision.trim() && { revision: revision.trim() }) } }),
    dryRun ? 'Argo CD tries the sync and changes nothing. The result is that of the last sync, above.' : 'Argo CD has begun the sync. It goes on when this page is closed; the timeline has its result.', PLACE,
    async () => newOperation(state, await readState(name))), reading);
  return (
    <Panel title={`Sync ${name.name}`} verb={dryRun ? 'Dry run' : 'Sync'} danger={deletes > 0} typed={deletes > 0 ? name.name : ''} whyNot={withoutState(reading) || busyText(state)} close={close} actions={actions} place={PLACE} act={act}>
      <State reading={reading} />
      {state && (
        <>
          <p class="preview">{revision.trim() ? `What changes at ${revision.trim()} is not known before. A dry run tells.` : previewText(preview)}</p>
          <p class="mute small">{revision.trim() ? '' : <>At <Revision value={wanted} />, as Argo CD has compared it. </>}{isAutomated(state) && 'Automated sync is on: it will come back to what Git wants.'}</p>
        </>
      )}
      <label>Revision<input value={revision} placeholder={app.specSource?.targetRevision || 'the wanted one'} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => setRevision(event.currentTarget.value)} /></label>
      <label class="check"><input type="checkbox" checked={prune} onChange={(event) => setPrune(event.currentTarget.checked)} />Delete what is not in Git any more (prune)</label>
      <label class="check"><input type="checkbox" checked={dryRun} onChange={(event) => setDryRun(event.currentTarget.checked)} />Dry run: try it, change nothing</label>
    </Panel>
  );
}

export function RefreshPanel({ name, actions, close }: PanelOf) {
  const [isHard, setHard] = useState(false);
  const act = () => actions.run(PLACE, 'refresh', () => changeRuntime(name.runtime, REFRESH, { ...namesOf(name), options: { refresh: isHard ? 'hard' : 'normal' } }), 'Argo CD has compared it again.');
  return (
    <Panel title={`Refresh ${name.name}`} verb="Refresh" close={close} actions={actions} place={PLACE} act={act}>
      <p>Argo CD compares the cluster with Git again. Nothing is deployed, unless automated sync is on and finds a difference.</p>
      <label class="check"><input type="checkbox" checked={isHard} onChange={(event) => setHard(event.currentTarget.checked)} />Hard: make the manifests anew, without the cache</label>
    </Panel>
  );
}

export function TerminatePanel({ name, actions, close }: PanelOf) {
  const reading = useLiveState(name);
  const operation = running(reading.value);
  let isOver = false;
  const act = () => actions.run(PLACE, 'terminate the operation', async () => {
    const { terminateApplicationOperation: answer } = await changeRuntime<{ terminateApplicationOperation: { terminated: boolean | null } | null }>(name.runtime, TERMINATE, namesOf(name));
    isOver = !answer?.terminated;
  }, () => (isOver ? 'No operation was in progress any more. Nothing was changed.' : 'Argo CD ends the operation. What it has applied so far stays.'), PLACE, async () => endedOperation(reading.value, await readState(name)));
  return (
    <Panel title={`Terminate the operation of ${name.name}`} verb="Terminate" danger whyNot={withoutState(reading) || (operation ? '' : 'No operation is in progress.')} close={close} actions={actions} place={PLACE} act={act}>
      <State reading={reading} />
      {operation && <Facts facts={[['Phase', operation.phase], ['Begun', <Age at={operation.startedAt} ago />], ['By', starter(operation)], ['Message', operation.message]]} />}
      {operation && <p>Argo CD stops it. What it has applied so far stays as it is.</p>}
    </Panel>
  );
}

export function RollbackPanel({ name, actions, close, releases, wanted }: PanelOf & { releases: readonly Release[]; wanted: number }) {
  const reading = useLiveState(name);
  const choices = releases.filter((one) => !one.current && one.historyId > 0);
  const [chosen, choose] = useState(choices.some((one) => one.historyId === wanted) ? wanted : choices[0]?.historyId ?? 0);
  const [prune, setPrune] = useState(false);
  const release = choices.find((one) => one.historyId === chosen);
  const commit = release?.application.status;
  const why = withoutState(reading) || (choices.length === 0 ? 'There is no earlier deployment to go back to.' : '')
    || (isAutomated(reading.value) ? 'Automated sync is on, so a rollback would be undone at once. Revert the commit in Git, or switch automated sync off there first.' : '') || busyText(reading.value);
  const act = () => orLookAgain(actions.run(PLACE, 'roll back', () => changeRuntime(name.runtime, ROLLBACK, { ...namesOf(name), historyId: chosen, prune }),
    `Argo CD goes back to deployment no. ${chosen}. The application is OutOfSync then, since Git wants another revision.`, PLACE, async () => newOperation(reading.value, await readState(name))), reading);
  return (
    <Panel title={`Roll back ${name.name}`} verb="Roll back" danger={prune} typed={prune ? name.name : ''} whyNot={why} close={close} actions={actions} place={PLACE} act={act}>
      <State reading={reading} />
      {choices.length > 0 && (
        <label>To<select value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
          {choices.map((one) => <option key={one.historyId} value={one.historyId}>no. {one.historyId} · {(one.syncOperationRevision || one.application.revision || '').slice(0, 7)} · {one.application.status?.commitMessage?.split('\n')[0] ?? 'message not known'}</option>)}
        </select></label>
      )}
      {release && <Facts facts={[['Revision', <Revision value={release.syncOperationRevision || release.application.revision} />], ['Author', commit?.commitAuthor], ['Message', commit?.commitMessage], ['Deployed', <Age at={commit?.syncFinishedAt ?? release.operationState?.finishedAt} ago />]]} />}
      <label class="check"><input type="checkbox" checked={prune} onChange={(event) => setPrune(event.currentTarget.checked)} />Delete what that deployment did not have (prune)</label>
    </Panel>
  );
}

export function DeletePanel({ name, app, actions, close }: PanelOf) {
  const [cascade, setCascade] = useState(true);
  const count = app.resources?.length;
  const act = () => actions.run(PLACE, 'delete the application', () => changeRuntime(name.runtime, DELETE_APPLICATION, { ...namesOf(name), cascade }),
    cascade ? 'Argo CD deletes the application and its objects. It is gone when they are.' : 'Argo CD deletes the application. Its objects stay in the cluster.');
  return (
    <Panel title={`Delete ${name.name}`} verb="Delete" danger typed={name.name} close={close} actions={actions} place={PLACE} act={act}>
      <p>{cascade ? `Deletes the application${count === undefined ? ' and all its objects in the cluster' : ` and its ${count} ${count === 1 ? 'object' : 'objects'} in the cluster`}.` : 'Deletes the application. Its objects stay in the cluster, and nothing follows Git for them any more.'}</p>
      <p class="mute small">If a Git source or another application makes it, it comes back. Remove it from Git then.</p>
      <label class="check"><input type="checkbox" checked={cascade} onChange={(event) => setCascade(event.currentTarget.checked)} />Delete its objects, too (cascade)</label>
    </Panel>
  );
}
