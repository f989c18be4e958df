// Differences between what Git wants and what the cluster has, object by object.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { MANIFESTS } from '../../data/documents';
import { query } from '../../data/request';
import { MOST_LINES, type Comparison, type Task } from '../../diff/compare';
import { ignoreSnippet, pathOf as pathOfLine } from '../../diff/ignore';
import { changesOf, countsOf, rowsOf, type Row } from '../../diff/rows';
import { run } from '../../diff/run';
import { announce } from '../../shell/announce';
import { addKeys } from '../../shell/keys';
import { here, setQuery } from '../../shell/router';
import { word } from '../../store/states';
import { AsOf } from '../../ui/as_of';
import { download } from '../../ui/download';
import { HelpLink } from '../../ui/help_link';
import { Command, Copy, Dialog, Empty, Failed, Loading } from '../../ui/parts';
import { useAgainWith, useReading } from '../../ui/read';
import { Status } from '../../ui/status';
import { useWindow } from '../../ui/virtual';
import { pathOf, type Name } from './links';
import { resourceId, type ApplicationDetail, type Resource } from './types';

export interface Manifests {
  group: string | null;
  kind: string;
  namespace: string | null;
  name: string;
  syncStatus: string | null;
  healthStatus: string | null;
  revision: string | null;
  seenAt: string | null;
  presence: string | null;
  desiredManifest: string | null;
  liveManifest: string | null;
  gitManifest: string | null;
  masked: boolean;
}

const SIDES = { git: 'Git file', desired: 'desired', live: 'live' } as const;
type Side = keyof typeof SIDES;
const TEXTS = { git: 'gitManifest', desired: 'desiredManifest', live: 'liveManifest' } as const;
const ABSENT: Record<Side, string> = {
  git: 'The file in Git is not known.', desired: 'Git does not have it, as far as that is known.', live: 'The cluster does not have it.',
};
const MOST_OBJECTS = 20;
const ROW = 20;

const isSide = (text: string | undefined): text is Side => text !== undefined && text in SIDES;

/** The objects to compare: the one of the address, else those that differ from Git. */
export function objectsOf(resources: readonly Resource[], wanted: string): Resource[] {
  if (wanted) return resources.filter((one) => resourceId(one) === wanted);
  return differing(resources).slice(0, MOST_OBJECTS);
}
const differing = (resources: readonly Resource[]): Resource[] => resources.filter((one) => one.syncStatus && word(one.syncStatus) !== 'Synced' && !one.hook);

/** What is said of those that are left out; empty: all are there. */
export function leftOut(resources: readonly Resource[], wanted: string): string {
  const count = wanted ? 0 : differing(resources).length;
  return count > MOST_OBJECTS ? `These are the first ${MOST_OBJECTS} of ${count} objects that differ from Git. Choose an object to see another one.` : '';
}

export function taskOf(one: Manifests, left: Side, right: Side, noise: boolean): Task {
  return { left: one[TEXTS[left]] ?? '', right: one[TEXTS[right]] ?? '', isLeftText: left === 'git', isRightText: right === 'git', isSecret: one.masked, noise };
}

interface Section {
  id: string;
  of: Resource;
  manifests: Manifests | null; // null: none was reported
  task: Task | null;
  comparison: Comparison | null;
}

/** Reads the manifests of these objects, and compares them. */
function useSections(name: Name, seenAt: string | null, wanted: string, objects: readonly Resource[], left: Side, right: Side, noise: boolean) {
  const key = objects.map(resourceId).join('\n');
  const reading = useReading(`${pathOf(name)} ${key}`, 'read the manifests', (signal) => Promise.all(objects.map(async ({ group, kind, namespace, name: own }) => {
    const { applicationResource } = await query<{ applicationResource: Manifests | null }>('read the manifests', MANIFESTS, { ...name, resource: { group, kind, namespace, name: own } }, signal);
    return applicationResource;
  })));
  useAgainWith(seenAt, reading.again);
  const [sections, setSections] = useState<Section[] | null>(null);
  useEffect(() => setSections(null), [wanted]); // they are of other objects
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const { value } = reading;
    if (!value) return undefined;
    const control = new AbortController();
    setProblem('');
    Promise.all(objects.map(async (of, index): Promise<Section> => {
      const manifests = value[index] ?? null;
      const task = manifests && taskOf(manifests, left, right, noise);
      return { id: resourceId(of), of, manifests, task, comparison: task && await run(task, control.signal) };
    })).then((all) => { if (!control.signal.aborted) setSections(all); }, (error: unknown) => { if (!control.signal.aborted) setProblem(String(error)); });
    return () => control.abort();
  }, [reading.value, left, right, noise]);
  return { reading, sections, problem };
}

type Item = { section: Section; row: Row | null }; // null: the head of the section

function Text({ text }: { text: string }) {
  const parts = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|[^\s:#"'][^:]*)(:(?:\s.*)?)$/.exec(text);
  return parts ? <>{parts[1]}<span class="key">{parts[2]}</span>{parts[3]}</> : <>{text}</>;
}

/** Returns what makes Argo CD ignore the field of a line; null where that is not about fields. */
function snippetOf({ of, task }: Section, row: Row | null): string | null {
  if (!task || !row || row.kind === '=' || row.kind === 'fold') return null;
  const found = row.right >= 0 && !task.isRightText ? pathOfLine(task, 'right', row.right) : row.left >= 0 && !task.isLeftText ? pathOfLine(task, 'left', row.left) : null;
  return found && ignoreSnippet(of, found.tree, found.path);
}

function Ignore({ snippet, close }: { snippet: string; close: () => void }) {
  return (
    <Dialog title="Ignore this field" close={close}>
      <p>Put this into the <code>spec</code> of the Application, in Git. Argo CD then counts the field as equal.</p>
      <Command text={snippet} />
      <p class="mute small">A sync still writes what Git has, unless <code>syncPolicy.syncOptions</code> has <code>RespectIgnoreDifferences=true</code>.</p>
    </Dialog>
  );
}

function Line({ row, comparison, isSplit, unfold, ignore }: { row: Row; comparison: Comparison; isSplit: boolean; unfold: (at: number) => void; ignore: (() => void) | null }) {
  if (row.kind === 'fold') return <div class="line fold"><button type="button" class="link" onClick={() => unfold(row.left)}>{row.count} equal lines</button></div>;
  const [left, right] = [row.left < 0 ? null : comparison.left.at(row.left)!, row.right < 0 ? null : comparison.right.at(row.right)!];
  const button = ignore && row.kind !== '=' && <button type="button" class="link ignore" title="Ignore this field (i)" onClick={ignore}>Ignore…</button>;
  const number = (at: number) => <span class="no">{at < 0 ? '' : at + 1}</span>;
  if (!isSplit) {
    const sign = row.kind === '-' ? '−' : row.kind === '+' ? '+' : ' ';
    return <div class={`line ${row.kind === '-' ? 'del' : row.kind === '+' ? 'add' : ''}`}>{number(row.left)}{number(row.right)}<span class="sign">{sign}</span><code><Text text={left ?? right ?? ''} /></code>{button}</div>;
  }
  const half = (at: number, text: string | null, sign: string) => <span class={`half ${row.kind === '=' ? '' : text === null ? 'none' : sign === '+' ? 'add' : 'del'}`}>{number(at)}<span class="sign">{row.kind === '=' || text === null ? ' ' : sign}</span><code>{text !== null && <Text text={text} />}</code></span>;
  return <div class="line split">{half(row.left, left, '−')}{half(row.right, right, '+')}{button}</div>;
}

function SectionHead({ section, left, right }: { section: Section; left: Side; right: Side }) {
  const { of, manifests, comparison, task } = section;
  const { removed, added } = countsOf(comparison ?? { runs: null });
  const absent = manifests ? [left, right].filter((side) => manifests[TEXTS[side]] === null).map((side) => (manifests.masked && side === 'git' ? 'The file of a Secret is not shown.' : ABSENT[side])) : ['Nothing was reported of it.'];
  const isCounted = comparison !== null && comparison.runs !== null;
  const lines = comparison ? `${comparison.counts[0]} and ${comparison.counts[1]} lines.` : '';
  const tooMuch = comparison && !comparison.runs ? (comparison.counts[0] + comparison.counts[1] > MOST_LINES ? `Too large to compare here: ${lines}` : `Too different to line up: ${lines}`) : '';
  const said = comparison?.problem || absent.join(' ') || tooMuch || (removed + added === 0 ? 'No difference.' : '');
  return (
    <div class="line section-head">
      <strong class="clip">{of.kind} {of.name}</strong>
      <Status value={of.syncStatus} none />
      {isCounted && <span class="counts"><span class="bad">−{removed}</span> <span class="ok">+{added}</span></span>}
      <span class="mute clip">{said}</span>
      <span class="grow" />
      {task && comparison && !isCounted && <button type="button" class="link" onClick={() => download(`${of.kind}-${of.name}.txt`, `--- ${left}\n${task.left}\n+++ ${right}\n${task.right}\n`)}>Download both</button>}
    </div>
  );
}

/** The text of a diff in the usual form, for a file. */
export function unified(name: string, comparison: Comparison, left: string, right: string): string {
  const lines = rowsOf(comparison, false, new Set()).map((row) => (row.kind === 'fold' ? `@@ ${row.count} equal lines @@`
    : `${row.kind === '=' ? ' ' : row.kind}${row.left >= 0 ? comparison.left.at(row.left) : comparison.right.at(row.right)}`));
  return [`--- ${name} (${left})`, `+++ ${name} (${right})`, ...lines, ''].join('\n');
}

export function Diff({ app, name }: { app: ApplicationDetail; name: Name }) {
  const { query: at } = here.value;
  const left: Side = isSide(at.get('left')) ? at.get('left') as Side : 'desired';
  const right: Side = isSide(at.get('right')) ? at.get('right') as Side : 'live';
  const wanted = at.get('object') ?? '';
  const noise = at.get('noise') === 'shown';
  const isSplit = at.get('form') === 'split';
  const resources = app.resources ?? [];
  const objects = objectsOf(resources, wanted);
  const { reading, sections, problem } = useSections(name, app.seenAt, wanted, objects, left, right, noise);
  const [opened, setOpened] = useState<ReadonlyMap<string, ReadonlySet<number>>>(new Map());
  const [current, setCurrent] = useState(-1);
  const [ignored, setIgnored] = useState<string | null>(null);
  const items = useMemo(() => (sections ?? []).flatMap((section): Item[] => [
    { section, row: null }, ...(section.comparison?.runs ? rowsOf(section.comparison, isSplit, opened.get(section.id) ?? new Set()).map((row) => ({ section, row })) : []),
  ]), [sections, isSplit, opened]);
  const changes = useMemo(() => changesOf(items.map(({ row }) => row ?? { kind: 'fold', left: 0, right: 0, count: 0 })), [items]);
  const longest = (sections ?? []).reduce((most, { comparison }) => Math.max(most, comparison?.longest ?? 0), 40);
  const scroller = useRef<HTMLDivElement>(null);
  const space = useRef<HTMLDivElement>(null);
  const shown = useRef<HTMLDivElement>(null);
  const [first, behind] = useWindow(scroller, ROW, items.length);
  useLayoutEffect(() => {
    if (!space.current || !shown.current) return;
    space.current.style.height = `${items.length * ROW}px`;
    space.current.style.minWidth = `${isSplit ? 2 * longest + 20 : longest + 16}ch`;
    shown.current.style.transform = `translateY(${first * ROW}px)`;
  });
  const step = useRef((_by: 1 | -1) => {});
  step.current = (by) => {
    if (changes.length === 0 || !scroller.current) return;
    const next = current < 0 ? (by > 0 ? 0 : changes.length - 1) : (current + by + changes.length) % changes.length;
    setCurrent(next);
    scroller.current.scrollTop = Math.max(0, (changes[next]! - 3) * ROW);
    announce(`Change ${next + 1} of ${changes.length}`);
  };
  const ignore = useRef(() => {});
  ignore.current = () => {
    const item = items[changes[Math.max(0, current)] ?? -1];
    if (item) setIgnored(snippetOf(item.section, item.row));
  };
  useLayoutEffect(() => addKeys('Differences', [
    { keys: 'i', text: 'Ignore the field of the change', run: () => ignore.current() },
    { keys: 'n', text: 'Next change', run: () => step.current(1) },
    { keys: 'N', text: 'Change before', run: () => step.current(-1) },
  ]), []);
  useEffect(() => setCurrent(-1), [sections]);
  if (app.resources === null) return <Empty title="Resources are not reported"><p>The runtime has sent no list of resources for this application.</p></Empty>;
  const hidden = (sections ?? []).reduce((sum, { comparison }) => sum + (comparison?.hidden ?? 0), 0);
  const one = sections?.length === 1 ? sections[0]! : null;
  const options = Object.entries(SIDES).map(([key, title]) => <option key={key} value={key}>{title}</option>);
  const save = () => download(`${name.name}.diff`, (sections ?? []).filter(({ comparison }) => comparison?.runs).map(({ of, comparison }) => unified(`${of.kind} ${of.name}`, comparison!, left, right)).join('\n'));
  return (
    <div class="diff-page">
      <div class="row">
        <label>Object
          <select value={wanted} onChange={(event) => setQuery({ object: event.currentTarget.value }, { replace: false })}>
            <option value="">all that differ from Git</option>
            {resources.map((resource) => <option key={resourceId(resource)} value={resourceId(resource)}>{resource.kind} {resource.name}{resource.syncStatus && word(resource.syncStatus) !== 'Synced' ? ` (${word(resource.syncStatus)})` : ''}</option>)}
          </select>
        </label>
        <label>Left<select value={left} onChange={(event) => setQuery({ left: event.currentTarget.value })}>{options}</select></label>
        <label>Right<select value={right} onChange={(event) => setQuery({ right: event.currentTarget.value })}>{options}</select></label>
        <button type="button" aria-pressed={isSplit} class="chip" onClick={() => setQuery({ form: isSplit ? '' : 'split' })}>Side by side</button>
        <button type="button" aria-pressed={noise} class="chip" title="Managed fields, status, and what the API server fills in" onClick={() => setQuery({ noise: noise ? '' : 'shown' })}>{noise ? 'Noise is shown' : hidden > 0 ? `${hidden} lines of noise hidden` : 'No noise hidden'}</button>
        <span class="grow" />
        {changes.length > 0 && <span class="mute" data-changes>{current >= 0 ? `${current + 1} of ${changes.length}` : changes.length} change{changes.length === 1 ? '' : 's'}</span>}
        <button type="button" class="quiet" disabled={changes.length === 0} onClick={() => step.current(-1)}>Before<kbd>N</kbd></button>
        <button type="button" class="quiet" disabled={changes.length === 0} onClick={() => step.current(1)}>Next<kbd>n</kbd></button>
        <button type="button" class="quiet" disabled={changes.length === 0} onClick={save}>Download</button>
      </div>
      {wanted && objects.length === 0 && <p class="notice">The object <code>{wanted}</code> is gone. <button type="button" onClick={() => setQuery({ object: '' })}>Dismiss</button></p>}
      {reading.failure && <Failed failure={reading.failure} retry={reading.again} />}
      {leftOut(resources, wanted) && <p class="notice">{leftOut(resources, wanted)}</p>}
      {problem && <p class="notice" role="alert">The comparison failed: {problem}</p>}
      {one?.manifests && <p class="row small mute"><span>Reported for <code>{one.manifests.revision?.slice(0, 7) || 'a revision that is not known'}</code></span><AsOf at={one.manifests.seenAt} runtime={name.runtime} />{one.manifests.presence === 'GONE' && <span class="warn">It was deleted; this is its last state.</span>}{one.manifests.masked && <span>Values of a Secret are never shown: only whether they are equal.</span>}{(left === 'git' || right === 'git') && one.manifests.gitManifest === null && <HelpLink help="files in git">When the file in Git is known</HelpLink>}<Copy text={one.id} /></p>}
      {!wanted && objects.length === 0 && <Empty title="Nothing differs from Git"><p>Choose an object to see its manifests.</p></Empty>}
      {objects.length > 0 && !sections && !reading.failure && !problem && <Loading what="the manifests" rows={10} />}
      {objects.length > 0 && (
        <div ref={scroller} class="diff" tabIndex={0} role="region" aria-label="Differences" data-scroller hidden={!sections}>
          <div ref={space} class="space">
            <div ref={shown}>
              {items.slice(first, behind).map(({ section, row }, index) => (row === null
                ? <SectionHead key={first + index} section={section} left={left} right={right} />
                : <Line key={first + index} row={row} comparison={section.comparison!} isSplit={isSplit} ignore={left === 'git' && right === 'git' ? null : () => setIgnored(snippetOf(section, row))} unfold={(line) => setOpened((old) => new Map([...old, [section.id, new Set([...(old.get(section.id) ?? []), line])]]))} />))}
            </div>
          </div>
        </div>
      )}
      {ignored !== null && <Ignore snippet={ignored} close={() => setIgnored(null)} />}
    </div>
  );
}
