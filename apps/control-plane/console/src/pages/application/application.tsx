import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { APPLICATION, GONE_APPLICATION, RELEASES } from '../../data/documents';
import { query } from '../../data/request';
import { followAlso, live, onChanges, onReset, type Changes } from '../../live/client';
import { addKeys } from '../../shell/keys';
import { address, here, navigate, setQuery } from '../../shell/router';
import { me } from '../../shell/session';
import { applications, loadState, offline, readings } from '../../store/state';
import { AsOf } from '../../ui/as_of';
import { Icon, type IconName } from '../../ui/icons';
import { lazy } from '../../ui/lazy';
import { Copy, Empty, Facts, Failed, Loading, Revision } from '../../ui/parts';
import { useReading, type Reading } from '../../ui/read';
import { Status } from '../../ui/status';
import { Age, exact, milliseconds } from '../../ui/time';
import { clusterName } from '../applications/columns';
import { arrange, listAddress, neighbours, view } from '../applications/view';
import { ActionBar, openRollback } from './actions/bar';
import { OperationView } from './actions/operation';
import { Link, pathOf, type Name } from './links';
import { Overview } from './overview';
import { Releases } from './releases';
import { Resources } from './resources';
import { patchKey, verdict, withPatches, type ApplicationDetail, type Release, type ResourcePatch } from './types';

const TABS = [['overview', 'Overview'], ['tree', 'Tree'], ['timeline', 'Timeline'], ['diff', 'Diff'], ['journal', 'Journal'], ['logs', 'Logs']] as const;

const Diff = lazy<{ app: ApplicationDetail; name: Name }>('the diff', async () => (await import('./diff')).Diff);
const Logs = lazy<{ app: ApplicationDetail; name: Name }>('the logs', async () => (await import('./logs')).Logs);
const Journal = lazy<{ name: Name; seenAt: string | null }>('the journal', async () => (await import('./journal')).Journal);

/** The page that says who may do what on an application. */
const whoMay = (name: Name) => address('/access/rules', new Map(Object.entries(name)));

/** An object that is not surely there any more. */
function Presence({ app }: { app: ApplicationDetail }) {
  if (app.presence !== 'STALE') return null;
  return <div class="notice old"><Icon name="question" /><div><strong>It may be gone.</strong><p>Its runtime reports, but not this application. What is shown is of {app.seenAt ? exact(milliseconds(app.seenAt)) : 'a time that is not known'}.</p></div></div>;
}

function Head({ app, name, tab }: { app: ApplicationDetail; name: Name; tab: string }) {
  const isSilent = offline.value.has(name.runtime);
  const said = verdict(app, isSilent);
  return (
    <>
      <div class="header-facts">
        <Status value={app.healthStatus} />
        <Status value={app.syncStatus} />
        {app.operation?.phase && <span class="pair">{app.operation.startedAt ? <a href={address(here.value.path, new Map([...here.value.query, ['op', app.operation.startedAt]]))}>Last sync</a> : <span class="mute">Last sync</span>}<Status value={app.operation.phase} /></span>}
        <span class="pair"><span class="mute">Revision</span><Revision value={app.revision} />{app.revision && <Copy text={app.revision} />}</span>
        <span class="pair"><span class="mute">Runtime</span><a href={`/runtimes/${encodeURIComponent(name.runtime)}`}>{name.runtime}</a>{isSilent && <Status value="Offline" />}</span>
        <span class="pair"><span class="mute">As of</span><Age at={app.seenAt ?? app.metadata.lastUpdated} ago /></span>
        <AsOf at={app.seenAt} runtime={name.runtime} />
      </div>
      <p class={`verdict ${said.tone}`}>{said.text}</p>
      <nav class="tabs" aria-label="Views of the application">
        {TABS.map(([key, title]) => <a key={key} href={`${pathOf(name)}/${key}`} aria-current={tab === key ? 'page' : undefined}>{title}</a>)}
        <a href={whoMay(name)}>Who may…</a>
      </nav>
    </>
  );
}

const PAGE = 50;
function useReleases(name: Name) {
  return useReading<Release[]>(pathOf(name), 'read the deployments', async (signal) => {
    const { gitopsReleases } = await query<{ gitopsReleases: { edges: { node: Release }[] } }>('read the deployments', RELEASES,
      { filters: { runtime: name.runtime, namespace: name.namespace, name: name.name }, first: PAGE }, signal);
    return gitopsReleases.edges.map(({ node }) => node);
  });
}

function Timeline({ releases, rollback }: { releases: Reading<Release[]>; rollback?: (entry: number) => void }) {
  if (releases.failure) return <Failed failure={releases.failure} retry={releases.again} />;
  if (!releases.value) return <Loading what="deployments" />;
  if (releases.value.length === 0) return <Empty title="No deployments yet"><p>Each sync that deploys a revision appears here.</p></Empty>;
  return (
    <>
      <Releases releases={releases.value} opened={here.value.query.get('entry') ?? ''} {...(rollback && { rollback })} />
      <p class="mute small">{releases.value.length === PAGE ? `The latest ${PAGE} deployments.` : 'All deployments that are recorded. Older ones may have been forgotten by retention.'}</p>
    </>
  );
}

/** The way to the neighbours in the list, without going back to it. */
function Steps({ name, tab }: { name: Name; tab: string }) {
  void readings.value;
  // A page that was opened by its address has the usual order.
  useEffect(() => {
    if (view.peek() === null && loadState.value.at > 0) arrange('', { key: 'health', down: false }, me.peek()?.name ?? '');
  }, [loadState.value.at]);
  const { at, count, before, next } = neighbours(name.runtime, name.namespace, name.name);
  if (at < 0) return null;
  const link = (row: number | undefined, title: string, key: string, icon: IconName) => (row === undefined
    ? <button type="button" class="quiet" disabled aria-label={title}><Icon name={icon} /></button>
    : <a class="button quiet" href={`${pathOf(applications.at(row))}/${tab}`} title={`${title}: ${applications.columns.name[row]} (${key})`} aria-label={`${title}: ${applications.columns.name[row]}`}><Icon name={icon} /></a>);
  return <nav class="steps-in-list" aria-label="Neighbours in the list">{link(before, 'Before', '[', 'left')}<span class="mute small">{at + 1} of {count}</span>{link(next, 'Next', ']', 'right')}</nav>;
}

interface Answer {
  application: ApplicationDetail | null;
  gone: ApplicationDetail | null; // what is known of one that was deleted
}
async function readApplication(name: Name, tried: string, signal: AbortSignal): Promise<Answer> {
  const { application } = await query<{ application: ApplicationDetail | null }>(tried, APPLICATION, name, signal);
  if (application) return { application, gone: null };
  const filters = { runtimes: [name.runtime], namespaces: [name.namespace], applications: [name.name], inactive: true };
  const { applications: slice } = await query<{ applications: { edges: { node: ApplicationDetail }[] } }>(tried, GONE_APPLICATION, { filters }, signal);
  const last = slice.edges.map(({ node }) => node).sort((a, b) => milliseconds(b.seenAt) - milliseconds(a.seenAt))[0];
  return { application: null, gone: last ?? null };
}

/** What is known of an application that was deleted. */
function Tombstone({ app, name, releases }: { app: ApplicationDetail; name: Name; releases: Reading<Release[]> }) {
  return (
    <>
      <div class="notice old"><Icon name="bar" /><div><strong>It was deleted.</strong><p>What follows is its last state, reported {app.seenAt ? exact(milliseconds(app.seenAt)) : 'at a time that is not known'}. Who deleted it is not reported.</p></div></div>
      <AsOf at={app.seenAt} runtime={name.runtime} />
      <Facts facts={[['Health', <Status value={app.healthStatus} />], ['Sync', <Status value={app.syncStatus} />], ['Revision', <Link to={app.history.commitUrl}><Revision value={app.revision} /></Link>], ['Author', app.history.commitAuthor],
        ['Message', app.history.commitMessage], ['Runtime', <a href={`/runtimes/${encodeURIComponent(name.runtime)}`}>{name.runtime}</a>], ['Cluster', clusterName(app.destination?.name || app.destination?.server || '')], ['Namespace', app.destination?.namespace],
        ['Repository', <Link to={app.repoURL}>{app.repoURL}</Link>], ['Path', app.path]]} />
      <h2 class="apart">Deployments</h2>
      <Timeline releases={releases} />
    </>
  );
}

const SOON = 300;

/** Keeps the page true: the stream's changes of resources at once, a new reading for all else, and one every 15 s without a stream. */
function useLive(name: Name, uid: string, again: () => void): ReadonlyMap<string, ResourcePatch> {
  const [patches, setPatches] = useState<ReadonlyMap<string, ResourcePatch>>(new Map());
  const topic = `app:${uid}`;
  useEffect(() => {
    setPatches(new Map());
    return uid ? followAlso(topic) : undefined;
  }, [uid]);
  const call = useRef(again);
  call.current = again;
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      due ??= setTimeout(() => {
        due = undefined;
        call.current();
      }, SOON);
    };
    const take = ({ patches: rows, gone }: Changes) => {
      const changed = new Map<string, ResourcePatch>();
      for (const row of rows.values()) {
        if (row.topic === topic && row.kind !== 'Application') changed.set(patchKey(String(row.kind), row.namespace as string | null, String(row.name)), { health: (row.health as string | null) || null, sync: (row.sync as string | null) || null, seenAt: milliseconds(row.seenAt as string | null) });
        else if (row.topic === topic || (row.name === name.name && row.runtime === name.runtime && row.namespace === name.namespace)) soon();
      }
      for (const gonePlace of gone.values()) if (gonePlace === topic) soon();
      if (gone.has(`index ${uid}`)) soon();
      if (changed.size > 0) setPatches((old) => new Map([...old, ...changed]));
    };
    const ends = [onReset(soon), onChanges(take)];
    const timer = setInterval(() => { if (!document.hidden && live.value.state !== 'live') call.current(); }, 15_000);
    return () => {
      ends.forEach((end) => end());
      clearInterval(timer);
      clearTimeout(due);
    };
  }, [pathOf(name), uid]);
  return patches;
}

export function ApplicationPage({ parameters }: { parameters: Record<string, string> }) {
  const name = { runtime: parameters.runtime!, namespace: parameters.namespace!, name: parameters.name! };
  const tab = TABS.some(([key]) => key === parameters.tab) ? parameters.tab! : 'overview';
  const tried = `read the application ${name.name}`;
  const reading = useReading(pathOf(name), tried, (signal) => readApplication(name, tried, signal));
  const releases = useReleases(name);
  const { application: read, gone } = reading.value ?? { application: null, gone: null };
  const again = () => {
    reading.again();
    releases.again();
  };
  const patches = useLive(name, read?.metadata.uid ?? '', again);
  const app = useMemo(() => read && withPatches(read, patches), [read, patches]);
  // Keys act on what is shown, also when they are faster than effects.
  const shown = useRef({ name, tab });
  shown.current = { name, tab };
  useLayoutEffect(() => {
    const step = (side: 'before' | 'next') => {
      const { name: at, tab: shownTab } = shown.current;
      const row = neighbours(at.runtime, at.namespace, at.name)[side];
      if (row !== undefined) navigate(`${pathOf(applications.at(row))}/${shownTab}`, { replace: true });
    };
    // Escape closes the panel first.
    const back = () => { if (here.peek().query.get('node')) setQuery({ node: '' }); else navigate(listAddress.peek()); };
    return addKeys('Application', [
      ...TABS.map(([key, title], index) => ({ keys: String(index + 1), text: title, run: () => navigate(`${pathOf(shown.current.name)}/${key}`) })),
      { keys: ']', text: 'Next in the list', run: () => step('next') },
      { keys: '[', text: 'Before in the list', run: () => step('before') },
      { keys: 'w', text: 'Who may…', run: () => navigate(whoMay(shown.current.name)) },
      { keys: 'Escape', text: 'Close the panel, then back to the list', run: back },
    ]);
  }, []);
  return (
    <div class="page">
      <header class="title">
        <p class="crumbs"><a href={listAddress.value}>Applications</a><span>{name.runtime}</span><span>{name.namespace}</span></p>
        <h1>{name.name}</h1>
        <span class="grow" />
        <Steps name={name} tab={tab} />
      </header>
      {reading.failure && <Failed failure={reading.failure} retry={reading.again} />}
      {!reading.value && !reading.failure && <Loading what={`the application ${name.name}`} />}
      {reading.value && !app && !gone && <Empty title={`There is no application ${name.name}`}><p>Nothing is recorded of it, its runtime was removed, or a rule keeps you from seeing it.</p><p><a href={`/audit`}>Look into the audit log</a></p></Empty>}
      {gone && <Tombstone app={gone} name={name} releases={releases} />}
      {app && <Presence app={app} />}
      {app && <ActionBar key={pathOf(name)} app={app} name={name} releases={releases.value ?? []} after={again} />}
      {app && here.value.query.get('op') && <OperationView app={app} releases={releases.value ?? []} op={here.value.query.get('op')!} />}
      {app && <Head app={app} name={name} tab={tab} />}
      {app && tab === 'overview' && <Overview app={app} name={name} releases={releases} />}
      {app && tab === 'tree' && <Resources app={app} name={name} after={again} />}
      {app && tab === 'timeline' && <Timeline releases={releases} rollback={openRollback} />}
      {app && tab === 'diff' && <Diff key={pathOf(name)} app={app} name={name} />}
      {app && tab === 'logs' && <Logs key={pathOf(name)} app={app} name={name} />}
      {app && tab === 'journal' && <Journal key={pathOf(name)} name={name} seenAt={app.seenAt} />}
    </div>
  );
}
