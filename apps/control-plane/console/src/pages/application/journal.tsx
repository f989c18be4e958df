// The journal: what the control plane keeps of the events about one application.
import { useSignal } from '@preact/signals';

import { JOURNAL, REPORT_AGAIN } from '../../data/documents';
import { query } from '../../data/request';
import { here, setQuery } from '../../shell/router';
import { Result, useActions } from '../../ui/action';
import { Icon, type IconName } from '../../ui/icons';
import { Copy, Empty, Failed, Loading, Revision } from '../../ui/parts';
import { useAgainWith, useReading } from '../../ui/read';
import { Status } from '../../ui/status';
import { Age, age, exact, milliseconds } from '../../ui/time';
import { Guarded, Panel } from './actions/panel';
import { useRights } from './actions/rights';
import { pathOf, type Name } from './links';

const PAGE = 50;

export interface Delivery {
  kind: 'MILESTONE' | 'LATEST' | 'REPEATED' | 'REFUSED';
  eventId: string | null;
  sequence: string | null;
  reportedAt: string | null;
  receivedAt: string;
  step: 'CREATED' | 'CHANGED' | 'RECREATED' | 'GONE' | null;
  object: { group: string | null; kind: string; namespace: string | null; name: string } | null;
  revision: string | null;
  syncStatus: string | null;
  healthStatus: string | null;
  healthMessage: string | null;
  phase: string | null;
  commitAuthor: string | null;
  commitMessage: string | null;
  reason: string | null;
  bytes: number | null;
}

const KINDS: Record<Delivery['kind'], { text: string; tone: string; icon: IconName; title: string }> = {
  MILESTONE: { text: 'Stored', tone: 'ok', icon: 'tick', title: 'It was stored, and changed revision, sync, health or operation.' },
  LATEST: { text: 'Last event', tone: 'ok', icon: 'tick', title: 'The last stored event of this object. Those before it left no trace but milestones.' },
  REPEATED: { text: 'Duplicate', tone: 'mute', icon: 'arrows', title: 'A stored event arrived again. It was dropped.' },
  REFUSED: { text: 'Quarantined', tone: 'bad', icon: 'cross', title: 'It was not stored.' },
};
const STEPS = { CREATED: 'seen first', CHANGED: '', RECREATED: 'made again', GONE: 'deleted' } as const;

/** What an event tells, in one line. */
export function whatOf(one: Delivery): string {
  if (one.kind === 'REFUSED') return one.reason ?? 'The reason is not known.';
  const step = one.step ? STEPS[one.step] : '';
  return [one.object ? `${one.object.kind} ${one.object.name}` : '', step].filter(Boolean).join(', ');
}

/** How long an event was under way. Empty: not known. */
export function delay(one: Pick<Delivery, 'reportedAt' | 'receivedAt'>): string {
  const [from, to] = [milliseconds(one.reportedAt), milliseconds(one.receivedAt)];
  if (from === 0 || to === 0) return '';
  return to - from < 5_000 ? `${Math.max(0, (to - from) / 1000).toFixed(1)} s` : age(from, to);
}

function Row({ one, place, isOpen }: { one: Delivery; place: string; isOpen: boolean }) {
  const kind = KINDS[one.kind];
  const json = JSON.stringify(one, null, 2);
  return (
    <>
      <tr class={isOpen ? 'chosen' : undefined}>
        <td><Age at={one.receivedAt} ago /></td>
        <td><span class={`state ${kind.tone}`} title={kind.title}><Icon name={kind.icon} />{kind.text}</span></td>
        <td><span class={one.kind === 'REFUSED' ? 'bad' : undefined}>{whatOf(one)}</span></td>
        <td>{one.kind !== 'REFUSED' && <span class="states"><Status value={one.healthStatus} none />{one.syncStatus && <Status value={one.syncStatus} />}{one.revision && <Revision value={one.revision} />}</span>}</td>
        <td><button type="button" class="quiet" aria-expanded={isOpen} aria-label={`Details: ${whatOf(one)}`} onClick={() => setQuery({ event: isOpen ? '' : place })}><Icon name={isOpen ? 'up' : 'down'} /></button></td>
      </tr>
      {isOpen && (
        <tr class="details"><td colSpan={5}>
          <p>{kind.title}</p>
          <p class="small mute">
            {`Received ${exact(milliseconds(one.receivedAt))}`}
            {one.reportedAt ? ` · made by the reporter ${exact(milliseconds(one.reportedAt))}, ${delay(one)} before` : ' · when the reporter made it is not known'}
            {one.sequence && ` · sequence ${one.sequence}`}
          </p>
          <p class="small">Event <code>{one.eventId ?? 'without an id'}</code></p>
          <div class="command"><pre tabIndex={0} aria-label="The entry as JSON">{json}</pre><Copy text={json} /></div>
        </td></tr>
      )}
    </>
  );
}

/** Has the reporter of the runtime report the application again, after a question. */
function ReportAgain({ name, after }: { name: Name; after: () => void }) {
  const actions = useActions(after);
  const isAsked = useSignal(false);
  const whyNot = useRights(name)('REFRESH');
  const close = () => { isAsked.value = false; };
  const act = () => {
    let said = '';
    return actions.run('again', 'have the application reported again', async () => {
      const { reportApplicationAgain } = await query<{ reportApplicationAgain: { message: string } }>('have the application reported again', REPORT_AGAIN, name);
      said = reportApplicationAgain.message;
    }, () => said);
  };
  return (
    <div class="action">
      <Guarded text="Report again…" whyNot={whyNot} open={() => { actions.clear(); isAsked.value = true; }} />
      {!isAsked.value && <Result actions={actions} at="again" />}
      {isAsked.value && (
        <Panel title={`Report ${name.name} again?`} verb="Report again" whyNot={whyNot} close={close} actions={actions} place="again" act={act}>
          <div class="stack">
            <p>Receivers of events see the present state of the application and of each of its resources once more, although nothing changed: with new ids and higher sequences. One that reacts to each event reacts once more.</p>
            <p>Earlier states do not come again, nor do deletions that were acknowledged. The reporter hears of it with its next contact, which is at most its heartbeat away (9 minutes unless it is set otherwise).</p>
          </div>
        </Panel>
      )}
    </div>
  );
}

/** The place of an entry in the address: entries of one event differ by their kind and time. */
const placeOf = (one: Delivery): string => `${one.kind}:${one.receivedAt}:${one.eventId ?? ''}`;

export function Journal({ name, seenAt }: { name: Name; seenAt: string | null }) {
  const { query: at } = here.value;
  const after = at.get('after') ?? '';
  const reading = useReading(`${pathOf(name)} ${after}`, 'read the journal', async (signal) => {
    const { applicationJournal } = await query<{ applicationJournal: { edges: { node: Delivery }[]; pageInfo: { endCursor: string | null; hasNextPage: boolean } } | null }>(
      'read the journal', JOURNAL, { ...name, first: PAGE, ...(after && { after }) }, signal);
    return applicationJournal && { entries: applicationJournal.edges.map(({ node }) => node), end: applicationJournal.pageInfo.endCursor, hasMore: applicationJournal.pageInfo.hasNextPage };
  });
  // The first page follows the application: another report of it makes another reading.
  useAgainWith(seenAt, () => { if (!after) reading.again(); });
  const isNone = reading.at > 0 && !reading.value && !reading.failure;
  return (
    <>
      {isNone && <Empty title="There is no journal"><p>The application is gone, or a rule keeps you from seeing it.</p></Empty>}
      {/* It stays while the journal is read: it may hold a question, and it has what came of the answer. */}
      {!isNone && <ReportAgain name={name} after={reading.again} />}
      {reading.failure && <Failed failure={reading.failure} retry={reading.again} />}
      {!reading.value && !reading.failure && !isNone && <Loading what="the journal" rows={10} />}
      {reading.value && <Deliveries page={reading.value} after={after} opened={at.get('event') ?? ''} />}
    </>
  );
}

interface Page {
  entries: readonly Delivery[];
  end: string | null;
  hasMore: boolean;
}
function Deliveries({ page: { entries, end, hasMore }, after, opened }: { page: Page; after: string; opened: string }) {
  return (
    <>
      {entries.length === 0 && <Empty title={after ? 'Nothing older' : 'No events yet'}><p>Events about this application and its resources appear here.</p></Empty>}
      {entries.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Deliveries">
          <table>
            <thead><tr><th scope="col">Received</th><th scope="col">Delivery</th><th scope="col">What</th><th scope="col">State</th><th scope="col"><span class="sr">Details</span></th></tr></thead>
            <tbody>{entries.map((one) => <Row key={placeOf(one)} one={one} place={placeOf(one)} isOpen={opened === placeOf(one)} />)}</tbody>
          </table>
        </div>
      )}
      <p class="pager">
        {after && <button type="button" onClick={() => setQuery({ after: '', event: '' }, { replace: false })}>Newest</button>}
        {hasMore && end && <button type="button" onClick={() => setQuery({ after: end, event: '' }, { replace: false })}>Older</button>}
      </p>
      <p class="mute small">Kept are milestones of the application (90 days unless the control plane is set otherwise), the last event of each of its objects, and quarantined events (7 days). A duplicate is shown while it is the last one of the application;
        all others are counted in the metric <code>gitops_control_plane_events_total</code> alone. A single event can't be asked for again, only the present state of all. A reporter repeats everything by itself once a day, and after the control plane's database went back in time.</p>
    </>
  );
}
