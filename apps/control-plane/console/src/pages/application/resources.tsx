import { useLayoutEffect, useMemo } from 'preact/hooks';

import { Tree } from '../../graph/tree';
import type { Unfolded } from '../../graph/layout';
import type { EventsOf } from '../../logs/object_events';
import { addKeys } from '../../shell/keys';
import { address, here, setQuery } from '../../shell/router';
import { state as stateOf } from '../../store/states';
import { Icon } from '../../ui/icons';
import { lazy } from '../../ui/lazy';
import { Empty, Facts } from '../../ui/parts';
import { Status } from '../../ui/status';
import { ResourceActions } from './actions/resource_actions';
import { Link, pathOf, type Name } from './links';
import { resourceId, treeOf, webAddress, whyEmpty, type ApplicationDetail, type Resource } from './types';

const ObjectEvents = lazy<{ runtime: string; application: string; appNamespace: string; of: EventsOf }>('the events', async () => (await import('../../logs/object_events')).ObjectEvents);

const severityOf = (one: Resource): number => Math.max(stateOf(one.healthStatus || 'Healthy').severity, stateOf(one.syncStatus || 'Synced').severity);

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

/** The folds that `fold=` opens: their ids, or with "none" nothing is folded. */
export function unfoldedOf(text: string | undefined): Unfolded {
  if (text === 'none') return 'all';
  return new Set((text ?? '').split(',').filter(Boolean).map((id) => { try { return decodeURIComponent(id); } catch { return id; } }));
}
const foldText = (ids: Iterable<string>): string => [...ids].map(encodeURIComponent).join(',');
const switchFolds = () => setQuery({ fold: here.peek().query.get('fold') ? '' : 'none' });

export function Resources({ app, name, after }: { app: ApplicationDetail; name: Name; after: () => void }) {
  const { query: at } = here.value;
  const [chosen, wanted, form] = [at.get('node') ?? '', at.get('q') ?? '', at.get('layout') === 'list' ? 'list' : 'tree'];
  const fold = at.get('fold') ?? '';
  const root = useMemo(() => treeOf(app), [app]);
  const unfolded = useMemo(() => unfoldedOf(fold), [fold]);
  useLayoutEffect(() => addKeys('Tree', [
    { keys: 'f', text: 'Open all folds, or fold again', run: switchFolds },
    { keys: '/', text: 'Find', run: () => document.querySelector<HTMLElement>('.tree-page input')?.focus() },
  ]), []);
  const resources = app.resources;
  if (resources === null) return <Empty title="Resources are not reported"><p>The runtime has sent no list of resources for this application.</p></Empty>;
  if (resources.length === 0) return <Empty title="0 resources"><p>{whyEmpty(app)}</p>{webAddress(app.repoURL) && <p><Link to={app.repoURL}>{app.repoURL}</Link> {app.path && <code>{app.path}</code>}</p>}</Empty>;
  const one = resources.find((resource) => resourceId(resource) === chosen);
  const fitting = resources.filter((resource) => `${resource.kind} ${resource.name}`.toLowerCase().includes(wanted.toLowerCase()))
    .sort((a, b) => severityOf(b) - severityOf(a));
  const choose = (id: string) => setQuery({ node: id === chosen ? '' : id });
  const unfold = (id: string, open: boolean) => {
    const ids = new Set(unfolded === 'all' ? [] : unfolded);
    if (open) ids.add(id);
    else ids.delete(id);
    setQuery({ fold: foldText(ids) });
  };
  return (
    <div class="tree-page">
      <div class="row">
        <label>Find<input value={wanted} placeholder="kind or name" onInput={(event) => setQuery({ q: event.currentTarget.value })} /></label>
        <label>Form<select value={form} onChange={(event) => setQuery({ layout: event.currentTarget.value === 'list' ? 'list' : '' })}><option value="tree">tree</option><option value="list">list</option></select></label>
        {form === 'tree' && <button type="button" onClick={switchFolds}>{fold ? 'Fold' : 'Open all folds'}<kbd>f</kbd></button>}
        <span class="mute">{wanted ? `${fitting.length} of ${resources.length} resources` : `${resources.length} resources`}</span>
      </div>
      {chosen && chosen !== 'application' && !one && <p class="notice">The resource <code>{chosen}</code> is gone. <button type="button" onClick={() => setQuery({ node: '' })}>Dismiss</button></p>}
      <div class="with-side">
        {form === 'tree' ? <Tree root={root} chosen={chosen} choose={(node) => choose(node.id)} wanted={wanted} unfolded={unfolded} unfold={unfold} /> : <ResourceList resources={fitting} chosen={chosen} choose={choose} />}
        {one && (
          <aside class="side" aria-label="Resource">
            <header><h2>{one.kind} {one.name}</h2><button type="button" class="quiet" aria-label="Close" onClick={() => setQuery({ node: '' })}><Icon name="close" /></button></header>
            <Facts facts={[['Health', <Status value={one.healthStatus} none />], ['Sync', <Status value={one.syncStatus} none />], ['Message', one.healthMessage], ['Kind', `${one.kind}`], ['API', one.group ? `${one.group}/${one.version}` : one.version],
              ['Namespace', one.namespace], ['Name', one.name], ['Hook', one.hook ? 'yes' : ''], ['Pruning', one.requiresPruning ? 'It is not in Git any more: a sync with pruning deletes it.' : '']]} />
            <p class="row"><a href={address(`${pathOf(name)}/diff`, new Map([['object', chosen]]))}>Diff</a><button type="button" class="link" aria-expanded={at.get('events') === '1'} onClick={() => setQuery({ events: at.get('events') === '1' ? '' : '1' })}>Events</button></p>
            {at.get('events') === '1' && <ObjectEvents runtime={name.runtime} application={name.name} appNamespace={name.namespace} of={{ group: one.group ?? '', kind: one.kind, namespace: one.namespace ?? '', name: one.name }} />}
            <ResourceActions key={resourceId(one)} name={name} one={one} after={after} />
          </aside>
        )}
      </div>
    </div>
  );
}
