import { useEffect, useState } from 'preact/hooks';

import { Age } from '../ui/time';
import { openLog } from './open';
import { read, type ReaderState } from './reader';
import type { Line } from './ring';

const MOST = 100;

/** The events of a pod, the newest first, as they come. */
export function PodEvents({ runtime, application, appNamespace, namespace, pod }: { runtime: string; application: string; appNamespace: string; namespace: string; pod: string }) {
  const [events, setEvents] = useState<readonly Line[]>([]);
  const [state, setState] = useState<ReaderState>({ kind: 'opening' });
  useEffect(() => {
    const control = new AbortController();
    setEvents([]);
    const choice = { events: 'true', applicationName: application, appNamespace, namespace, podName: pod };
    void read({
      open: (_since, signal) => openLog(runtime, choice, signal),
      take: (lines) => setEvents((old) => [...lines.reverse(), ...old].slice(0, MOST)),
      trouble: (message) => setState({ kind: 'failed', status: 0, message }),
      state: setState,
    }, control.signal);
    return () => control.abort();
  }, [runtime, application, appNamespace, namespace, pod]);
  return (
    <section aria-label={`Events of ${pod}`}>
      <h3>Events of {pod}</h3>
      {(state.kind === 'failed' || state.kind === 'waiting') && <p class="bad">{state.message}</p>}
      {events.length === 0 && state.kind !== 'failed' && <p class="mute small">{state.kind === 'opening' ? 'Reading…' : 'None so far. A cluster forgets events after an hour.'}</p>}
      <ul class="lines">
        {events.map((one, index) => <li key={`${one.time} ${index}`}><span class="mute"><Age at={one.time} ago /></span><strong class={one.type === 'Warning' ? 'warn' : undefined}>{one.reason}</strong><span>{one.text}</span></li>)}
      </ul>
    </section>
  );
}
