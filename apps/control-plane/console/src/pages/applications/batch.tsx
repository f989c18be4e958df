import { useEffect, useRef, useState } from 'preact/hooks';

import { changeRuntime } from '../../data/runtime';
import { REFRESH, SYNC, TERMINATE } from '../../data/runtime_documents';
import { offline } from '../../store/state';
import { saidBy } from '../../ui/action';
import { Dialog, RequestId } from '../../ui/parts';
import { applicationPath } from './columns';
import { again, countsText, linesOf, runBatch, type Item, type Line } from './batch_run';

export type BatchAction = 'sync' | 'refresh' | 'terminate';

const TYPED_ABOVE = 50;
const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

interface Verb {
  text: string;
  says: string;
  act: (item: Item) => Promise<string>;
}
const names = ({ name, namespace }: Item) => ({ name, namespace });
const VERBS: Record<BatchAction, Verb> = {
  sync: { text: 'Sync', says: 'Each is deployed at the revision that Git has now. Nothing is deleted: without prune, what is not in Git any more stays.',
    act: async (item) => {
      await changeRuntime(item.runtime, SYNC, { ...names(item), options: { prune: false, dryRun: false } });
      return 'Argo CD has begun the sync.';
    } },
  refresh: { text: 'Refresh', says: 'Argo CD compares each with Git again. Nothing is deployed, unless automated sync finds a difference.',
    act: async (item) => {
      await changeRuntime(item.runtime, REFRESH, { ...names(item), options: { refresh: 'normal' } });
      return 'Argo CD has compared it again.';
    } },
  terminate: { text: 'Terminate', says: 'The operation of each is stopped. What it has applied so far stays as it is.',
    act: async (item) => {
      const { terminateApplicationOperation: answer } = await changeRuntime<{ terminateApplicationOperation: { terminated: boolean | null } | null }>(item.runtime, TERMINATE, names(item));
      return answer?.terminated ? 'Argo CD ends the operation.' : 'No operation was in progress.';
    } },
};

function Results({ lines }: { lines: readonly Line[] }) {
  const open = lines.filter(({ outcome }) => outcome && outcome.kind !== 'done');
  if (open.length === 0) return null;
  return (
    <ul class="lines batch" tabIndex={0} aria-label="Not done">
      {open.map(({ item, outcome }) => (
        <li key={applicationPath(item)}><strong>{outcome!.kind.charAt(0).toUpperCase() + outcome!.kind.slice(1)}</strong> <a href={`${applicationPath(item)}/timeline`} target="_blank" rel="noopener">{item.name}</a> <span class="mute small">{item.runtime}</span> <span>{saidBy(outcome!)}</span> <RequestId id={outcome!.requestId} /></li>
      ))}
    </ul>
  );
}

/** Runs an action on chosen applications. It runs in this page, so the page has to stay open until the end. */
export function Batch({ action, items, close }: { action: BatchAction; items: readonly Item[]; close: () => void }) {
  const [wanted, setWanted] = useState(items);
  const [lines, setLines] = useState<readonly Line[] | null>(null);
  const [isRunning, setRunning] = useState(false);
  const [typed, setTyped] = useState('');
  const isStopped = useRef(false);
  const { text, says, act } = VERBS[action];
  const runtimes = new Set(wanted.map(({ runtime }) => runtime));
  const silent = wanted.filter(({ runtime }) => offline.value.has(runtime)).length;
  const isTyped = wanted.length > TYPED_ABOVE && !lines;
  const reason = isTyped && typed !== String(wanted.length) ? `Type ${wanted.length} first.` : '';
  useEffect(() => {
    if (!isRunning) return undefined;
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', stay);
    return () => removeEventListener('beforeunload', stay);
  }, [isRunning]);
  useEffect(() => () => { isStopped.current = true; }, []);
  const run = async (some: readonly Item[]) => {
    isStopped.current = false;
    setWanted(some);
    setLines(linesOf(some));
    setRunning(true);
    await runBatch(some, act, setLines, () => isStopped.current);
    setRunning(false);
  };
  const send = (event: Event) => {
    event.preventDefault();
    if (!reason && !isRunning) void run(wanted);
  };
  const tried = lines?.filter(({ outcome }) => outcome).length ?? 0;
  const rest = lines && !isRunning ? again(lines) : [];
  return (
    <Dialog title={`${text} ${plural(items.length, 'application')}`} close={close} canClose={!isRunning}>
      <form class="fields" onSubmit={send}>
        {!lines && <p>{plural(wanted.length, 'application')} of {plural(runtimes.size, 'runtime')}, one after the other, from this page: leave it open until the end. {says}</p>}
        {!lines && silent > 0 && <p class="notice">{silent} of them {silent === 1 ? 'is' : 'are'} of a runtime that is silent. It may not answer.</p>}
        {isTyped && <label>Type {wanted.length} to confirm<input value={typed} inputMode="numeric" autocomplete="off" onInput={(event) => setTyped(event.currentTarget.value)} /></label>}
        {lines && <p role={isRunning ? undefined : 'status'}>{isRunning ? `${tried} of ${lines.length}: ` : 'Ended: '}{countsText(lines)}</p>}
        {lines && <Results lines={lines} />}
        <div class="action">
          {!lines && <button type="submit" class={action === 'terminate' ? 'danger' : 'primary'} aria-disabled={reason ? true : undefined} title={reason || undefined}>{text}</button>}
          {isRunning && <button type="button" onClick={() => { isStopped.current = true; }}>Stop after this one</button>}
          {rest.length > 0 && <button type="button" onClick={() => void run(rest)}>Try {rest.length} again</button>}
          {!isRunning && <button type="button" onClick={close}>{lines ? 'Close' : 'Cancel'}</button>}
        </div>
      </form>
    </Dialog>
  );
}
