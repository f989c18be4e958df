import { state as stateOf, word } from '../../store/states';
import { Facts, Failed, Revision } from '../../ui/parts';
import type { Reading } from '../../ui/read';
import { Status } from '../../ui/status';
import { Age } from '../../ui/time';
import { clusterName } from '../applications/columns';
import { Errors } from '../runtimes/runtimes';
import { Link, pathOf, type Name } from './links';
import { Releases } from './releases';
import { imagesOf, resourceId, sourceTrouble, type ApplicationDetail, type Release } from './types';

export function Overview({ app, name, releases }: { app: ApplicationDetail; name: Name; releases: Reading<Release[]> }) {
  const sources = app.specSources ?? (app.specSource ? [{ ...app.specSource, ref: null }] : []);
  const broken = (app.resources ?? []).filter((one) => one.healthStatus && stateOf(one.healthStatus).severity >= 5 || one.syncStatus && word(one.syncStatus) === 'OutOfSync');
  const { parent, children } = app.appsRelations ?? { parent: null, children: null };
  const images = imagesOf(releases.value ?? []);
  const trouble = sourceTrouble(app);
  const last = releases.value?.slice(0, 5) ?? [];
  return (
    <div class="columns">
      <div>
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
          <h2>Conditions</h2>
          {(app.errors?.length ?? 0) > 0 ? <Errors errors={app.errors!} /> : <p class="mute">None is reported.</p>}
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
          <h2>Images</h2>
          {!releases.value && !releases.failure && <p class="mute">…</p>}
          {releases.value && (!images || images.length === 0) && <p class="mute">None is recorded with the current deployment.</p>}
          {images && images.length > 0 && <ul class="lines">{images.map((one) => <li key={`${one.workload} ${one.image}`}><code>{one.image}</code><span class="mute">{one.workload}</span></li>)}</ul>}
        </section>
        <section>
          <h2>Source</h2>
          {trouble && <p class="bad">{trouble}</p>}
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
