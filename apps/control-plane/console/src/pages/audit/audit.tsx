import { useSignal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';

import { serverNow } from '../../data/clock';
import { request } from '../../data/request';
import { addKeys } from '../../shell/keys';
import { here, setQuery } from '../../shell/router';
import { Icon, type IconName } from '../../ui/icons';
import { Empty, Failed, Field, Loading, RequestId } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { Age, exact, milliseconds } from '../../ui/time';

interface Entry {
  no: number;
  time: string;
  caller: string;
  callerId: string;
  address: string;
  action: string;
  target: string;
  result: string;
  detail: string;
  requestId: string;
}
const PAGE = 100;
const RESULTS: Record<string, { icon: IconName; tone: string; text: string }> = {
  done: { icon: 'tick', tone: 'ok', text: 'Done' },
  refused: { icon: 'cut', tone: 'warn', text: 'Refused' },
  failed: { icon: 'cross', tone: 'bad', text: 'Failed' },
  'not known': { icon: 'question', tone: 'mute', text: 'Not known' },
};
const FILTERS = ['result', 'action', 'callerId', 'from', 'until'] as const;

const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');
/** The day of a time, as a field for dates has it; empty without one. */
export function dayOf(time: string | undefined): string {
  const at = milliseconds(time);
  if (at === 0) return '';
  const date = new Date(at);
  return `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}
/** The begin of a day in the zone of the reader, or with `end` that of the day after it. */
export function timeOf(day: string, end = false): string {
  if (day === '') return '';
  const [year, month, date] = day.split('-').map(Number);
  const at = new Date(0);
  // A year that is being typed begins as 0002, which the constructor takes for 1902.
  at.setFullYear(year!, month! - 1, date! + (end ? 1 : 0));
  at.setHours(0, 0, 0, 0);
  return at.toISOString();
}
/** The address of the entries of yesterday. */
export function yesterday(): Record<string, string> {
  const before = new Date(serverNow());
  before.setDate(before.getDate() - 1);
  const day = dayOf(before.toISOString());
  return { from: timeOf(day), until: timeOf(day, true), before: '' };
}

export function AuditPage() {
  const { query } = here.value;
  const parameters = new URLSearchParams({ limit: String(PAGE) });
  for (const name of [...FILTERS, 'before']) if (query.get(name)) parameters.set(name, query.get(name)!);
  const key = parameters.toString();
  const reading = useReading(key, 'read the audit log', (signal) => request<{ entries: Entry[] }>('read the audit log', `/console/api/v1/audit?${key}`, { signal }));
  const opened = useSignal(0);
  useLayoutEffect(() => addKeys('Audit log', [{ keys: 'r', text: 'Read again', run: reading.again }, { keys: 'd', text: 'Yesterday', run: () => setQuery(yesterday()) }]), []);
  const entries = reading.value?.entries ?? [];
  const csv = new URLSearchParams(parameters);
  csv.delete('limit');
  csv.delete('before');
  csv.set('format', 'csv');
  const isFiltered = FILTERS.some((name) => query.get(name)) || query.get('before');
  return (
    <div class="page">
      <header class="title">
        <h1>Audit log</h1>
        <span class="grow" />
        <a class="button" href={`/console/api/v1/audit?${csv.toString()}`} download="audit.csv" title="The newest 50,000 entries of this choice at most. A file that is cut is called audit-newest-50000.csv.">Export CSV</a>
      </header>
      <form class="row" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>Result
          <select value={query.get('result') ?? ''} onChange={(event) => setQuery({ result: event.currentTarget.value, before: '' })}>
            <option value="">all</option>{Object.entries(RESULTS).map(([value, { text }]) => <option key={value} value={value}>{text}</option>)}
          </select>
        </label>
        <label>Action<Field value={query.get('action') ?? ''} placeholder="createRuntime" take={(action) => setQuery({ action, before: '' })} /></label>
        <label>From<input type="date" value={dayOf(query.get('from'))} onChange={(event) => setQuery({ from: timeOf(event.currentTarget.value), before: '' })} /></label>
        <label>To<input type="date" value={query.get('until') ? dayOf(new Date(milliseconds(query.get('until')) - 1).toISOString()) : ''} onChange={(event) => setQuery({ until: timeOf(event.currentTarget.value, true), before: '' })} /></label>
        <button type="button" onClick={() => setQuery(yesterday())}>Yesterday<kbd>d</kbd></button>
        {query.get('callerId') && <span class="chip">Who: <code>{query.get('callerId')}</code><button type="button" class="quiet" aria-label="All callers" onClick={() => setQuery({ callerId: '', before: '' })}><Icon name="close" size={12} /></button></span>}
      </form>
      {reading.failure?.kind === 'refused' ? (
        <Empty title="You may not see the audit log"><p>{reading.failure.message}</p><RequestId id={reading.failure.requestId} /></Empty>
      ) : reading.failure && <Failed failure={reading.failure} retry={reading.again} />}
      {!reading.value && !reading.failure && <Loading what="the audit log" rows={10} />}
      {reading.value && entries.length === 0 && (isFiltered
        ? <Empty title="Nothing matches"><p>No entry has these values.</p><p><button type="button" onClick={() => setQuery({ result: '', action: '', callerId: '', from: '', until: '', before: '' })}>Clear the filter</button></p></Empty>
        : <Empty title="Nothing was changed yet"><p>Each change and each refusal appears here.</p></Empty>)}
      {entries.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Entries">
          <table>
            <thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">Action</th><th scope="col">Object</th><th scope="col">Result</th><th scope="col">From</th><th scope="col"><span class="sr">Details</span></th></tr></thead>
            <tbody>
              {entries.map((entry) => {
                const result = RESULTS[entry.result] ?? RESULTS['not known']!;
                return [
                  <tr key={entry.no}>
                    <td><Age at={entry.time} ago /></td>
                    <td>{entry.caller ? <button type="button" class="link" title="Entries of this caller alone" onClick={() => setQuery({ callerId: entry.callerId, before: '' }, { replace: false })}>{entry.caller}</button> : <span class="mute">nobody</span>}</td>
                    <td><code class="clip">{entry.action}</code></td>
                    <td><span class="clip" title={entry.target}>{entry.target || '–'}</span></td>
                    <td><span class={`state ${result.tone}`}><Icon name={result.icon} />{result.text}</span></td>
                    <td class="mute">{entry.address}</td>
                    <td><button type="button" class="quiet" aria-expanded={opened.value === entry.no} aria-label="Details" onClick={() => (opened.value = opened.value === entry.no ? 0 : entry.no)}><Icon name={opened.value === entry.no ? 'up' : 'down'} /></button></td>
                  </tr>,
                  opened.value === entry.no && (
                    <tr key={`${entry.no} details`} class="details"><td colSpan={7}>
                      {entry.detail && <p>{entry.detail}</p>}
                      <p class="small mute">Entry {entry.no} · {exact(milliseconds(entry.time))} <RequestId id={entry.requestId} /></p>
                      {entry.target && <p class="small"><code>{entry.target}</code></p>}
                    </td></tr>
                  ),
                ];
              })}
            </tbody>
          </table>
        </div>
      )}
      <p class="pager">
        {query.get('before') && <button type="button" onClick={() => setQuery({ before: '' }, { replace: false })}>Newest</button>}
        {entries.length === PAGE && <button type="button" onClick={() => setQuery({ before: String(entries.at(-1)!.no) }, { replace: false })}>Older</button>}
      </p>
    </div>
  );
}
