import { useEffect, useState } from 'preact/hooks';

import { RequestId } from '../ui/parts';
import { Age } from '../ui/time';
import { openLog } from './open';
import { read, type ReaderState } from './reader';
import type { Line } from './ring';

const MOST = 100;

export interface EventsOf {
  group: string;
  kind: string;
  namespace: string;
  name: string;
}

/** The events of an object of an application, the newest first, as they come. They are read from its runtime. */
export function ObjectEvents({ runtime, application, appNamespace, of }: { runtime: string; application: string; appNamespace: string; of: EventsOf }) {
  const [events, setEvents] = useState<readonly Line[]>([]);
  const [state, setState] = useState<ReaderState>({ kind: 'opening' });
  useEffect(() => {
    const control = new AbortController();
    setEvents([]);
    const choice = { events: 'true', applicationName: application, appNamespace, namespace: of.namespace, ...(of.kind === 'Pod' ? { podName: of.name } : { group: of.group, kind: of.kind, resourceName: of.name }) };
    void read({
      open: (_since, signal) => openLog(runtime, choice, signal),
      take: (lines) => setEvents((old) => [...lines.reverse(), ...old].slice(0, MOST)),
      trouble: (message) => setState({ kind: 'failed', status: 0, requestId: '', message }),
      state: setState,
    }, control.signal);
    return () => control.abort();
  }, [runtime, application, appNamespace, of.group, of.kind, of.namespace, of.name]);
  return (
    <section aria-label={`Events of ${of.name}`}>
      <h3>Events of {of.name}</h3>
      {(state.kind === 'failed' || state.kind === 'waiting') && <p class="bad">{state.message} <RequestId id={state.requestId} /></p>}
      {events.length === 0 && (state.kind === 'reading' || state.kind === 'opening' || state.kind === 'ended') && <p class="mute small">{state.kind === 'opening' ? 'Reading…' : 'None so far. A cluster forgets events after an hour.'}</p>}
      <ul class="lines">
        {events.map((one, index) => <li key={`${one.time} ${index}`}><span class="mute"><Age at={one.time} ago /></span><strong class={one.type === 'Warning' ? 'warn' : undefined}>{one.reason}</strong><span>{one.text}</span></li>)}
      </ul>
    </section>
  );
}
