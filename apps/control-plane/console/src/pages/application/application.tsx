import { useEffect, useMemo } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { APPLICATION, RELEASES } from '../../data/documents';
import { query } from '../../data/request';
import { Tree } from '../../graph/tree';
import { live, onChanges, onReset } from '../../live/client';
import { addKeys } from '../../shell/keys';
import { here, navigate, setQuery } from '../../shell/router';
import { me } from '../../shell/session';
import { applications, loadState, offline, readings } from '../../store/state';
import { state as stateOf, word } from '../../store/states';
import { Icon, type IconName } from '../../ui/icons';
import { Copy, Empty, Facts, Failed, Loading, Revision } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { Status } from '../../ui/status';
import { Age, age, milliseconds } from '../../ui/time';
import { clusterName } from '../applications/columns';
import { arrange, listAddress, neighbours, view } from '../applications/view';
import { Errors } from '../runtimes/runtimes';
import { resourceId, treeOf, verdict, webAddress, type ApplicationDetail, type Release, type Resource } from './types';

const TABS = [['overview', 'Overview'], ['tree', 'Tree'], ['timeline', 'Timeline']] as const;
interface Name {
  runtime: string;
  namespace: string;
  name: string;
}
const pathOf = (name: Name) => `/applications/${[name.runtime, name.namespace, name.name].map(encodeURIComponent).join('/')}`;

function Link({ to, children }: { to: string | null | undefined; children: ComponentChildren }) {
  const href = webAddress(to);
  return href ? <a href={href} target="_blank" rel="noopener noreferrer">{children}<Icon name="link" size={12} /></a> : <>{children}</>;
}

function Head({ app, name, tab }: { app: ApplicationDetail; name: Name; tab: string }) {
  const isSilent = offline.value.has(name.runtime);
  const said = verdict(app, isSilent);
  return (
    <>
      <div class="header-facts">
        <Status value={app.healthStatus} />
        <Status value={app.syncStatus} />
        {app.operation?.phase && <span class="pair"><span class="mute">Last sync</span><Status value={app.operation.phase} /></span>}
        <span class="pair"><span class="mute">Revision</span><Revision value={app.revision} />{app.revision && <Copy text={app.revision} />}</span>
        <span class="pair"><span class="mute">Runtime</span><a href={`/runtimes/${encodeURIComponent(name.runtime)}`}>{name.runtime}</a>{isSilent && <Status value="Offline" />}</span>
        <span class="pair"><span class="mute">As of</span><Age at={app.metadata.lastUpdated ?? app.updatedAt} ago /></span>
      </div>
      <p class={`verdict ${said.tone}`}>{said.text}</p>
      <nav class="tabs" aria-label="Views of the application">
        {TABS.map(([key, title]) => <a key={key} href={`${pathOf(name)}/${key}`} aria-current={tab === key ? 'page' : undefined}>{title}</a>)}
      </nav>
    </>
  );
}

function Overview({ app, name, releases }: { app: ApplicationDetail; name: Name; releases: ReturnType<typeof useReleases> }) {
  const sources = app.specSources ?? (app.specSource ? [{ ...app.specSource, ref: null }] : []);
  const broken = (app.resources ?? []).filter((one) => one.healthStatus && stateOf(one.healthStatus).severity >= 5 || one.syncStatus && word(one.syncStatus) === 'OutOfSync');
  const { parent, children } = app.appsRelations ?? { parent: null, children: null };
  const last = releases.value?.slice(0, 5) ?? [];
  return (
    <div class="columns">
      <div>
        {(app.errors?.length ?? 0) > 0 && <Errors errors={app.errors!} />}
        <section>
          <h2>Attention</h2>
          {broken.length === 0 && <p class="mute">{app.resources === null ? 'Its resources are not reported.' : `None of its ${app.resources.length} resources needs attention.`}</p>}
          {broken.length > 0 && (
            <ul class="lines">
              {broken.slice(0, 10).map((one) => (
                <li key={resourceId(one)}>
                  <Status value={one.healthStatus && stateOf(one.healthStatus).severity >= 5 ? one.healthStatus : one.syncStatus} />
                  <a href={`${pathOf(name)}/tree?node=${encodeURIComponent(resourceId(one))}`}>{one.kind} {one.name}</a>
                  {one.healthMessage && <span class="mute">{one.healthMessage}</span>}
                </li>
              ))}
              {broken.length > 10 && <li><a href={`${pathOf(name)}/tree`}>{broken.length - 10} more</a></li>}
            </ul>
          )}
        </section>
        <section>
          <h2>Latest deployments</h2>
          {releases.failure && <Failed failure={releases.failure} retry={releases.again} />}
          {releases.value && last.length === 0 && <p class="mute">None is recorded.</p>}
          <Releases releases={last} />
          {(releases.value?.length ?? 0) > 5 && <p><a href={`${pathOf(name)}/timeline`}>All</a></p>}
        </section>
      </div>
      <div>
        <section>
          <h2>Source</h2>
          {sources.length === 0 && <p class="mute">Not known.</p>}
          {sources.map((one) => (
            <Facts key={one.repoURL + one.path + one.chart} facts={[
              ['Repository', <Link to={one.repoURL}>{one.repoURL}</Link>], ['Path', one.path], ['Chart', one.chart], ['Target', one.targetRevision], ['Named', one.ref]]} />
          ))}
        </section>
        <section>
          <h2>Commit</h2>
          <Facts facts={[['Revision', <Link to={app.history.commitUrl}><Revision value={app.revision} /></Link>], ['Author', app.history.commitAuthor], ['Message', app.history.commitMessage],
            ['Date', app.history.commitDate && <Age at={app.history.commitDate} ago />]]} />
        </section>
        <section>
          <h2>Last sync</h2>
          {app.operation ? <Facts facts={[['Result', <Status value={app.operation.phase} />], ['Started', <Age at={app.operation.startedAt} ago />], ['By', app.operation.initiatedBy || 'automated sync'],
            ['Revision', <Revision value={app.operation.revision} />], ['Message', app.operation.message]]} /> : <p class="mute">None is reported.</p>}
        </section>
        <section>
          <h2>Place</h2>
          <Facts facts={[['Cluster', clusterName(app.destination?.name || app.destination?.server || '')], ['Namespace', app.destination?.namespace], ['Project', app.project], ['Automated sync', app.syncPolicy === 'Automated' ? 'on' : app.syncPolicy === 'Manual' ? 'off' : 'not known'],
            ['Managed by', parent && <a href={pathOf({ ...parent, namespace: parent.namespace ?? name.namespace })}>{parent.name}</a>],
            ['Manages', (children?.length ?? 0) > 0 && `${children!.length} applications`]]} />
        </section>
      </div>
    </div>
  );
}

function ResourceList({ resources, chosen, choose }: { resources: readonly Resource[]; chosen: string; choose: (id: string) => void }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Resources">
      <table>
        <thead><tr><th scope="col">Kind</th><th scope="col">Name</th><th scope="col">Namespace</th><th scope="col">Health</th><th scope="col">Sync</th></tr></thead>
        <tbody>
          {resources.map((one) => (
            <tr key={resourceId(one)} class={chosen === resourceId(one) ? 'chosen' : undefined}>
              <td>{one.kind}</td><th scope="row"><button type="button" class="link" onClick={() => choose(resourceId(one))}>{one.name}</button></th><td>{one.namespace || '–'}</td>
              <td><Status value={one.healthStatus} none /></td><td><Status value={one.syncStatus} none /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Resources({ app }: { app: ApplicationDetail }) {
  const { query: at } = here.value;
  const [chosen, wanted, form] = [at.get('node') ?? '', at.get('q') ?? '', at.get('layout') === 'list' ? 'list' : 'tree'];
  const root = useMemo(() => treeOf(app), [app]);
  const resources = app.resources;
  if (resources === null) return <Empty title="Resources are not reported"><p>The runtime has sent no list of resources for this application.</p></Empty>;
  if (resources.length === 0) return <Empty title="No resources"><p>The application has none. Is its path empty?</p>{webAddress(app.repoURL) && <p><Link to={app.repoURL}>{app.repoURL}</Link> {app.path && <code>{app.path}</code>}</p>}</Empty>;
  const one = resources.find((resource) => resourceId(resource) === chosen);
  const fitting = resources.filter((resource) => `${resource.kind} ${resource.name}`.toLowerCase().includes(wanted.toLowerCase()))
    .sort((a, b) => stateOf(b.healthStatus || 'Healthy').severity - stateOf(a.healthStatus || 'Healthy').severity);
  const choose = (id: string) => setQuery({ node: id === chosen ? '' : id });
  return (
    <div class="tree-page">
      <div class="row">
        <label>Find<input value={wanted} placeholder="kind or name" onInput={(event) => setQuery({ q: event.currentTarget.value })} /></label>
        <label>Form<select value={form} onChange={(event) => setQuery({ layout: event.currentTarget.value === 'list' ? 'list' : '' })}><option value="tree">tree</option><option value="list">list</option></select></label>
        <span class="mute">{resources.length} resources</span>
      </div>
      {chosen && chosen !== 'application' && !one && <p class="notice">The resource <code>{chosen}</code> is gone. <button type="button" onClick={() => setQuery({ node: '' })}>Dismiss</button></p>}
      <div class="with-side">
        {form === 'tree' ? <Tree root={root} chosen={chosen} choose={(node) => choose(node.id)} wanted={wanted} /> : <ResourceList resources={fitting} chosen={chosen} choose={choose} />}
        {one && (
          <aside class="side" aria-label="Resource">
            <header><h2>{one.kind} {one.name}</h2><button type="button" class="quiet" aria-label="Close" onClick={() => setQuery({ node: '' })}><Icon name="close" /></button></header>
            <Facts facts={[['Health', <Status value={one.healthStatus} none />], ['Sync', <Status value={one.syncStatus} none />], ['Message', one.healthMessage], ['Kind', `${one.kind}`], ['API', one.group ? `${one.group}/${one.version}` : one.version],
              ['Namespace', one.namespace], ['Name', one.name], ['Hook', one.hook ? 'yes' : ''], ['Pruning', one.requiresPruning ? 'It is not in Git any more: a sync with pruning deletes it.' : '']]} />
          </aside>
        )}
      </div>
    </div>
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

/** One line for each deployment, the newest first. */
function Releases({ releases, opened = '' }: { releases: readonly Release[]; opened?: string }) {
  return (
    <ol class="timeline">
      {releases.map((release) => {
        const { application, operationState } = release;
        const commit = application.status;
        const begin = milliseconds(commit?.syncStartedAt ?? operationState?.startedAt);
        const end = milliseconds(commit?.syncFinishedAt ?? operationState?.finishedAt);
        const images = (release.toState?.services ?? []).flatMap((one) => (one.images ?? []).map(({ image }) => `${one.name}: ${image ?? 'not known'}`));
        return (
          <li key={release.historyId} class={opened === String(release.historyId) ? 'chosen' : undefined}>
            <span class="when"><Age at={end || begin} ago /></span>
            {operationState ? <Status value={operationState.phase} /> : <Status value={commit?.healthStatus} title="Its last known health" />}
            <div class="what">
              <p><Link to={commit?.commitUrl}><Revision value={release.syncOperationRevision || application.revision} /></Link> <span>{commit?.commitMessage?.split('\n')[0] || 'Message not known'}</span>{release.current && <span class="tag">current</span>}</p>
              <p class="small mute">
                {commit?.commitAuthor && `${commit.commitAuthor} · `}{operationState && `started by ${operationState.initiatedBy || 'automated sync'} · `}no. {release.historyId}
                {begin > 0 && end > begin && ` · took ${age(begin, end) === 'now' ? 'less than 5 s' : age(begin, end)}`}
                {milliseconds(commit?.commitDate) > 0 && end > 0 && ` · ${age(milliseconds(commit?.commitDate), end)} after the commit`}
              </p>
              {operationState?.phase && operationState.phase !== 'Succeeded' && operationState.message && <p class="bad">{operationState.message}</p>}
              {images.length > 0 && <p class="small mute clip" title={images.join('\n')}>{images.join(' · ')}</p>}
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function Timeline({ releases }: { releases: ReturnType<typeof useReleases> }) {
  if (releases.failure) return <Failed failure={releases.failure} retry={releases.again} />;
  if (!releases.value) return <Loading what="deployments" />;
  if (releases.value.length === 0) return <Empty title="No deployments yet"><p>Each sync that deploys a revision appears here.</p></Empty>;
  return (
    <>
      <Releases releases={releases.value} opened={here.value.query.get('entry') ?? ''} />
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
    ? <span class="button quiet" aria-disabled="true"><Icon name={icon} /></span>
    : <a class="button quiet" href={`${pathOf(applications.at(row))}/${tab}`} title={`${title}: ${applications.columns.name[row]} (${key})`} aria-label={`${title}: ${applications.columns.name[row]}`}><Icon name={icon} /></a>);
  return <nav class="steps-in-list" aria-label="Neighbours in the list">{link(before, 'Before', '[', 'left')}<span class="mute small">{at + 1} of {count}</span>{link(next, 'Next', ']', 'right')}</nav>;
}

export function ApplicationPage({ parameters }: { parameters: Record<string, string> }) {
  const name = { runtime: parameters.runtime!, namespace: parameters.namespace!, name: parameters.name! };
  const tab = TABS.some(([key]) => key === parameters.tab) ? parameters.tab! : 'overview';
  const tried = `read the application ${name.name}`;
  const reading = useReading(pathOf(name), tried, async (signal) =>
    (await query<{ application: ApplicationDetail | null }>(tried, APPLICATION, name, signal)));
  const releases = useReleases(name);
  useEffect(() => {
    const again = () => {
      reading.again();
      releases.again();
    };
    const ends = [onReset(again), onChanges(({ patches }) => {
      for (const row of patches.values()) if (row.name === name.name && row.runtime === name.runtime && row.namespace === name.namespace) return again();
    })];
    const timer = setInterval(() => { if (!document.hidden && live.value.state !== 'live') again(); }, 15_000);
    return () => {
      ends.forEach((end) => end());
      clearInterval(timer);
    };
  }, [pathOf(name)]);
  useEffect(() => {
    const step = (side: 'before' | 'next') => {
      const row = neighbours(name.runtime, name.namespace, name.name)[side];
      if (row !== undefined) navigate(`${pathOf(applications.at(row))}/${tab}`, { replace: true });
    };
    return addKeys('Application', [
      ...TABS.map(([key, title], index) => ({ keys: String(index + 1), text: title, run: () => navigate(`${pathOf(name)}/${key}`) })),
      { keys: ']', text: 'Next in the list', run: () => step('next') },
      { keys: '[', text: 'Before in the list', run: () => step('before') },
      { keys: 'r', text: 'Read again', run: reading.again },
      { keys: 'Escape', text: 'Back to the list', run: () => navigate(listAddress.peek()) },
    ]);
  }, [pathOf(name), tab]);
  const app = reading.value?.application;
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
      {reading.value && !app && <Empty title={`There is no application ${name.name}`}><p>It was deleted, its runtime was removed, or a rule keeps you from seeing it.</p><p><a href={`/audit`}>Look into the audit log</a></p></Empty>}
      {app && <Head app={app} name={name} tab={tab} />}
      {app && tab === 'overview' && <Overview app={app} name={name} releases={releases} />}
      {app && tab === 'tree' && <Resources app={app} />}
      {app && tab === 'timeline' && <Timeline releases={releases} />}
    </div>
  );
}
