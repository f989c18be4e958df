import { word } from '../../store/states';
import { Status } from '../../ui/status';
import { Revision } from '../../ui/parts';
import { Age, age, milliseconds } from '../../ui/time';
import { Link } from './links';
import type { Release } from './types';

/** One line for each deployment, the newest first. */
export function Releases({ releases, opened = '', rollback }: { releases: readonly Release[]; opened?: string; rollback?: (entry: number) => void }) {
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
              <p><Link to={commit?.commitUrl}><Revision value={release.syncOperationRevision || application.revision} /></Link> <span>{commit?.commitMessage?.split('\n')[0] || 'Message not known'}</span>{release.current && <span class="tag">current</span>}{release.current && operationState && commit?.healthStatus && word(commit.healthStatus) !== 'Healthy' && <> <Status value={commit.healthStatus} title="Its health now" /></>}</p>
              <p class="small mute">
                {commit?.commitAuthor && `${commit.commitAuthor} · `}{operationState && `started by ${operationState.initiatedBy || 'automated sync'} · `}no. {release.historyId}
                {begin > 0 && end > begin && ` · took ${age(begin, end) === 'now' ? 'less than 5 s' : age(begin, end)}`}
                {milliseconds(commit?.commitDate) > 0 && end > 0 && ` · ${age(milliseconds(commit?.commitDate), end)} after the commit`}
              </p>
              {operationState?.phase && operationState.phase !== 'Succeeded' && operationState.message && <p class="bad">{operationState.message}</p>}
              {rollback && !release.current && <p><button type="button" onClick={() => rollback(release.historyId)}>Roll back to here…</button></p>}
              {images.length > 0 && <p class="small mute clip" title={images.join('\n')}>{images.join(' · ')}</p>}
            </div>
          </li>
        );
      })}
    </ol>
  );
}
