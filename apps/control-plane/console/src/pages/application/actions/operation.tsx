// An operation by its address: `op=` has the time at which it began, by which Argo CD tells operations of an Application apart.
import { setQuery } from '../../../shell/router';
import { word } from '../../../store/states';
import { Icon } from '../../../ui/icons';
import { Facts, Revision } from '../../../ui/parts';
import { Status } from '../../../ui/status';
import { Age, exact, milliseconds } from '../../../ui/time';
import type { ApplicationDetail, Release } from '../types';

export interface Shown {
  phase: string;
  message: string;
  finishedAt: string | null;
  revision: string | null;
  by: string;
  historyId: number | null; // of the deployment that it made; null: it is not known
}

/** Finds an operation in what is reported: the last one of the application, or that of a deployment. */
export function operationAt(app: Pick<ApplicationDetail, 'operation'>, releases: readonly Release[], op: string): Shown | 'earlier' | 'later' {
  const wanted = milliseconds(op);
  const release = releases.find((one) => milliseconds(one.operationState?.startedAt) === wanted);
  const last = app.operation;
  const operation = milliseconds(last?.startedAt) === wanted ? last : release?.operationState;
  if (wanted > 0 && operation) {
    const revision = operation === last ? last.revision : release?.syncOperationRevision;
    return { phase: operation.phase ?? '', message: operation.message ?? '', finishedAt: operation.finishedAt, revision: revision ?? null, by: operation.initiatedBy ?? '', historyId: release?.historyId ?? null };
  }
  return wanted > milliseconds(last?.startedAt) ? 'later' : 'earlier';
}

export function OperationView({ app, releases, op }: { app: ApplicationDetail; releases: readonly Release[]; op: string }) {
  const found = operationAt(app, releases, op);
  const begun = milliseconds(op);
  return (
    <section class="notice old" aria-label="Operation">
      <Icon name="clock" />
      <div>
        <strong>Operation {begun > 0 && <>begun <time dateTime={new Date(begun).toISOString()}>{exact(begun)}</time></>}</strong>
        {found === 'later' && <p>The runtime has not reported it yet. This line changes by itself.</p>}
        {found === 'earlier' && <p>It is not the last one, and no deployment of it is recorded.</p>}
        {typeof found === 'object' && (
          <>
            <Facts facts={[['Phase', <Status value={word(found.phase)} />], ['By', found.by], ['Revision', <Revision value={found.revision} />], ['Ended', found.finishedAt && <Age at={found.finishedAt} ago />], ['Deployment', found.historyId !== null && `no. ${found.historyId}`]]} />
            {found.message && <p>{found.message}</p>}
          </>
        )}
      </div>
      <button type="button" class="quiet" aria-label="Close the operation" onClick={() => setQuery({ op: '' })}><Icon name="close" size={12} /></button>
    </section>
  );
}
