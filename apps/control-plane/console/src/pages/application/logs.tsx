// Logs of the application's pods, read from its runtime by the browser itself.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { ObjectEvents } from '../../logs/object_events';
import { openLog, type LogChoice } from '../../logs/open';
import { read, type ReaderState } from '../../logs/reader';
import { fileOf, hitsOf, letterOf, MOST_LINES, Ring, rowsOf, toneOf, type Line } from '../../logs/ring';
import { announce } from '../../shell/announce';
import { addKeys } from '../../shell/keys';
import { here, setQuery } from '../../shell/router';
import { sessionEnded } from '../../shell/session';
import { AsOf } from '../../ui/as_of';
import { download } from '../../ui/download';
import { Empty, Field, RequestId } from '../../ui/parts';
import { clock, milliseconds, pageClock } from '../../ui/time';
import { useWindow } from '../../ui/virtual';
import { pathOf, type Name } from './links';
import type { ApplicationDetail } from './types';

const ROW = 20;
const EDGE = 4; // pixels from the end that still count as the end
const FLUSH = 100; // milliseconds between two paintings
const TAIL = '2000'; // lines of each pod to begin with
const SINCE = [['', 'the last lines'], ['300', '5 minutes'], ['3600', '1 hour'], ['21600', '6 hours'], ['86400', '1 day']] as const;
/** Kubernetes' words for a container that has not run: it has no log, but its pod has events. */
const NOT_STARTED = /waiting to start|ContainerCreating|PodInitializing|ImagePullBackOff|ErrImagePull|CreateContainer|not found in pod/i;

/** What to ask for, by the address of the view. */
export function choiceOf(name: Name, query: ReadonlyMap<string, string>, since: string): LogChoice {
  const [group = '', kind = '', namespace = '', resource = ''] = (query.get('of') ?? '').split(':');
  const isPrevious = query.get('prev') === '1';
  const age = query.get('since') ?? '';
  return {
    applicationName: name.name, appNamespace: name.namespace, podName: query.get('pod') ?? '', container: query.get('container') ?? '', group, kind, namespace, resourceName: resource,
    ...(isPrevious ? { previous: 'true' } : { follow: 'true' }),
    ...(since ? { sinceTime: since } : age ? { sinceSeconds: age } : { tailLines: TAIL }),
  };
}

function stateText(state: ReaderState): string {
  if (state.kind === 'waiting') return `${state.message} Trying again at ${pageClock(state.retryAt)}.`;
  return { opening: 'Opening…', reading: 'Following', ended: 'This is all of it', failed: '' }[state.kind];
}

/** Reads a log into a ring. `version` counts what changed. */
function useLog(name: Name, query: ReadonlyMap<string, string>) {
  const ring = useRef(new Ring());
  const pods = useRef(new Map<string, number>());
  const containers = useRef(new Set<string>());
  const [version, setVersion] = useState(0);
  const [state, setState] = useState<ReaderState>({ kind: 'opening' });
  const [troubles, setTroubles] = useState<readonly string[]>([]);
  const [round, setRound] = useState(0);
  const key = JSON.stringify(choiceOf(name, query, ''));
  useEffect(() => {
    const control = new AbortController();
    ring.current.clear();
    setTroubles([]);
    setVersion((old) => old + 1);
    let due: ReturnType<typeof setTimeout> | undefined;
    const paint = () => {
      due = undefined;
      setVersion((old) => old + 1);
    };
    const take = (lines: Line[]) => {
      for (const line of lines) {
        ring.current.push(line);
        if (!pods.current.has(line.pod)) pods.current.set(line.pod, pods.current.size);
        if (line.container) containers.current.add(line.container);
      }
      due ??= setTimeout(paint, FLUSH);
    };
    const trouble = (message: string) => setTroubles((old) => (old.includes(message) ? old : [...old, message].slice(-5)));
    void read({ open: (since, signal) => openLog(name.runtime, choiceOf(name, query, since), signal), take, trouble, state: setState }, control.signal);
    return () => {
      control.abort();
      clearTimeout(due);
    };
  }, [name.runtime, key, round]);
  // What was refused for the lack of a session is read again when there is one.
  const isSignedOut = sessionEnded.value;
  useEffect(() => {
    if (!isSignedOut && state.kind === 'failed' && state.status === 401) setRound((old) => old + 1);
  }, [isSignedOut]);
  return { ring: ring.current, pods: pods.current, containers: containers.current, version, state, troubles, again: () => setRound((old) => old + 1) };
}

/** A text with what is looked for marked. */
function Marked({ text, wanted }: { text: string; wanted: string }) {
  if (!wanted) return <>{text}</>;
  const parts: (string | { hit: string })[] = [];
  const lower = text.toLowerCase();
  let at = 0;
  for (let hit = lower.indexOf(wanted.toLowerCase()); hit >= 0; hit = lower.indexOf(wanted.toLowerCase(), at)) {
    parts.push(text.slice(at, hit), { hit: text.slice(hit, hit + wanted.length) });
    at = hit + wanted.length;
  }
  parts.push(text.slice(at));
  return <>{parts.map((part, index) => (typeof part === 'string' ? part : <mark key={index}>{part.hit}</mark>))}</>;
}

export function Logs({ app, name }: { app: ApplicationDetail; name: Name }) {
  const { query } = here.value;
  const [wanted, pod, container, isPrevious, isWrapped] = [query.get('q') ?? '', query.get('pod') ?? '', query.get('container') ?? '', query.get('prev') === '1', query.get('wrap') === '1'];
  const { ring, pods, containers, version, state, troubles, again } = useLog(name, query);
  const scroller = useRef<HTMLDivElement>(null);
  const space = useRef<HTMLDivElement>(null);
  const shown = useRef<HTMLDivElement>(null);
  const ruler = useRef<HTMLSpanElement>(null);
  const [follows, setFollows] = useState(true);
  const [current, setCurrent] = useState(-1); // the line of the hit that was walked to, counted from the first one of the log
  const [columns, setColumns] = useState(Infinity);
  useLayoutEffect(() => {
    if (!isWrapped || !scroller.current || !ruler.current) return setColumns(Infinity);
    const width = ruler.current.getBoundingClientRect().width / 10;
    const measure = () => setColumns(Math.max(20, Math.floor((scroller.current!.clientWidth - 24 - 17 * width) / width)));
    measure();
    addEventListener('resize', measure);
    return () => removeEventListener('resize', measure);
  }, [isWrapped]);
  const rows = useMemo(() => rowsOf(ring, columns), [version, columns]);
  const hits = useMemo(() => hitsOf(ring, wanted), [version, wanted]);
  const longest = useMemo(() => { let most = 80; for (let at = 0; at < ring.size; ++at) most = Math.max(most, ring.at(at).text.length); return most; }, [version]);
  const [first, behind] = useWindow(scroller, ROW, rows.length);
  const dropped = useRef(0);
  useLayoutEffect(() => {
    if (!space.current || !shown.current || !scroller.current) return;
    space.current.style.height = `${rows.length * ROW}px`;
    space.current.style.minWidth = isWrapped ? '' : `${longest + 20}ch`;
    shown.current.style.transform = `translateY(${first * ROW}px)`;
    if (follows) scroller.current.scrollTop = rows.length * ROW;
    else if (ring.dropped > dropped.current && !isWrapped) scroller.current.scrollTop -= (ring.dropped - dropped.current) * ROW; // what is read stays where it is
    dropped.current = ring.dropped;
  }, [rows, first, follows, longest]);
  // Scrolling up ends following, scrolling to the end begins it again.
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = scroller.current!;
    setFollows(scrollTop + clientHeight >= scrollHeight - EDGE);
  };
  const step = useRef((_by: 1 | -1) => {});
  step.current = (by) => {
    if (hits.length === 0 || !scroller.current) return;
    const at = hits.findIndex((line) => line + ring.dropped === current);
    const next = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    setFollows(false);
    setCurrent(hits[next]! + ring.dropped);
    const row = rows.findIndex(({ line }) => line === hits[next]);
    scroller.current.scrollTop = Math.max(0, row * ROW - scroller.current.clientHeight / 2);
    announce(`Line ${next + 1} of ${hits.length} with ${wanted}`);
  };
  useLayoutEffect(() => addKeys('Logs', [
    { keys: '/', text: 'Search in the loaded lines', run: () => document.querySelector<HTMLElement>('.log-page input[type="search"]')?.focus() },
    { keys: 'n', text: 'Next line that was found', run: () => step.current(1) },
    { keys: 'N', text: 'Line before', run: () => step.current(-1) },
    { keys: 'End', text: 'Follow', run: () => setFollows(true) },
  ]), []);
  const failure = state.kind === 'failed' ? state.message : '';
  const lacking = pod && NOT_STARTED.test([failure, ...troubles].join(' ')) ? pod : '';
  const known = [...new Set([...pods.keys(), ...(pod ? [pod] : [])])].sort();
  const knownContainers = [...new Set([...containers, ...(container ? [container] : [])])].sort();
  const at = hits.findIndex((line) => line + ring.dropped === current);
  return (
    <div class="log-page">
      <div class="row">
        <label>Pod<select value={pod} onChange={(event) => setQuery({ pod: event.currentTarget.value, container: '' }, { replace: false })}><option value="">all</option>{known.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
        <label>Container<Field class="short" value={container} list="containers" placeholder="the usual one" take={(one) => setQuery({ container: one })} /></label>
        <datalist id="containers">{knownContainers.map((one) => <option key={one} value={one} />)}</datalist>
        <label>Since<select value={query.get('since') ?? ''} onChange={(event) => setQuery({ since: event.currentTarget.value })}>{SINCE.map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select></label>
        <button type="button" class="chip" aria-pressed={isPrevious} title="The container before its last restart" onClick={() => setQuery({ prev: isPrevious ? '' : '1' })}>Previous</button>
        <button type="button" class="chip" aria-pressed={isWrapped} onClick={() => setQuery({ wrap: isWrapped ? '' : '1' })}>Wrap</button>
        <span class="grow" />
        <label>Search<input type="search" value={wanted} onInput={(event) => { setCurrent(-1); setQuery({ q: event.currentTarget.value }); }} onKeyDown={(event) => { if (event.key === 'Enter') step.current(event.shiftKey ? -1 : 1); }} /></label>
        {wanted && <span class="mute" data-hits>{at >= 0 ? `${at + 1} of ${hits.length}` : `${hits.length} lines`}</span>}
        <button type="button" class="quiet" disabled={ring.size === 0} onClick={() => download(`${name.name}${pod && `-${pod}`}.log`, fileOf(ring))}>Download</button>
      </div>
      <p class="row small mute" role="status">
        <span class={state.kind === 'waiting' ? 'warn' : undefined}>{stateText(state)}</span>{state.kind === 'waiting' && <RequestId id={state.requestId} />}
        <span data-lines>{ring.size} lines{ring.dropped > 0 && `, ${ring.dropped} older ones dropped: the page keeps ${MOST_LINES}`}</span>
        {container && <span>Container <strong>{container}</strong></span>}
        <AsOf at={app.seenAt} runtime={name.runtime} />
        {!follows && state.kind === 'reading' && <button type="button" class="link" onClick={() => setFollows(true)}>Follow</button>}
        {state.kind === 'ended' && <button type="button" class="link" onClick={again}>Read again</button>}
      </p>
      {failure && <div class="notice bad" role="alert"><div><strong>The log could not be read.</strong><p>{failure}</p>{state.kind === 'failed' && <RequestId id={state.requestId} />}</div><button type="button" onClick={again}>Try again</button></div>}
      {troubles.map((text) => <p key={text} class="warn">{text}</p>)}
      {lacking && <ObjectEvents runtime={name.runtime} application={name.name} appNamespace={name.namespace} of={{ group: '', kind: 'Pod', namespace: app.destination?.namespace ?? '', name: lacking }} />}
      {ring.size === 0 && (state.kind === 'ended' || state.kind === 'reading') && !lacking && <Empty title="No lines"><p>{isPrevious ? 'There is no container before the present one, or its log is gone.' : 'Its pods have written nothing in this time, or it has no pods.'}</p></Empty>}
      <div ref={scroller} class="diff log" tabIndex={0} role="region" aria-label="Log" onScroll={scrolled} hidden={ring.size === 0} key={pathOf(name)}>
        <span ref={ruler} class="ruler" aria-hidden="true">0123456789</span>
        <div ref={space} class="space">
          <div ref={shown}>
            {rows.slice(first, behind).map(({ line, from }, index) => {
              const one = ring.at(line);
              const number = pods.get(one.pod) ?? 0;
              const isCurrent = line + ring.dropped === current;
              return (
                <div key={first + index} class={`line ${toneOf(one.text)}${isCurrent ? ' current' : ''}`}>
                  <span class="stamp" title={one.time}>{from === 0 && one.time ? clock(milliseconds(one.time)) : ''}</span>
                  <span class={`pod pod-${number % 4}`} title={[one.pod, one.container].filter(Boolean).join('/')}>{from === 0 ? letterOf(number) : ''}</span>
                  <code><Marked text={one.text.slice(from, columns === Infinity ? undefined : from + columns)} wanted={wanted} /></code>
                </div>
              );
            })}
          </div>
        </div>
      </div>
      {pods.size > 1 && <p class="chips small mute">{[...pods].slice(0, 30).map(([one, number]) => <button key={one} type="button" class="link" onClick={() => setQuery({ pod: one }, { replace: false })}><b class={`pod pod-${number % 4}`}>{letterOf(number)}</b> {one}</button>)}</p>}
    </div>
  );
}
