import { effect, signal } from '@preact/signals';

import { clockOffset, serverNow } from '../data/clock';

/** The time that ages are counted from. It moves once every 10 seconds, for the whole page at once. */
export const now = signal(Date.now());
effect(() => { now.value = Date.now() + clockOffset.value; });
if (typeof window !== 'undefined') setInterval(() => (now.value = serverNow()), 10_000);

const STEPS: [number, string][] = [[60, 's'], [3_600, 'min'], [86_400, 'h'], [604_800, 'd'], [Infinity, 'w']];

/** "3 min", "5 h"; "now" below five seconds. */
export function age(at: number, from: number): string {
  const seconds = Math.max(0, Math.round((from - at) / 1000));
  if (seconds < 5) return 'now';
  let unit = 1;
  for (const [limit, name] of STEPS) {
    if (seconds < limit) return `${Math.floor(seconds / unit)} ${name}`;
    unit = limit;
  }
  return '';
}

const EXACT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
/** The time with its zone. */
export function exact(at: number): string {
  return EXACT.format(at);
}
export function clock(at: number): string {
  return CLOCK.format(at);
}
/** The same of what this page did itself, at a time by the clock of this device: by the server's, as all else that is shown. */
export function pageClock(at: number): string {
  return clock(at + clockOffset.value);
}

const MINUTE = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
const LONG = 300 * 86_400_000; // after this a day of the year may be taken for the next one
/** "10:42", of another day "26 Nov 10:42", and of long ago "26 Nov 2025 10:42". */
export function minute(at: number): string {
  const far = Math.abs(serverNow() - at);
  if (far < 86_400_000 && DAY.format(at) === DAY.format(serverNow())) return MINUTE.format(at);
  return `${(far > LONG ? DATE : DAY).format(at)} ${MINUTE.format(at)}`;
}

export function milliseconds(at: string | number | null | undefined): number {
  const time = typeof at === 'number' ? at : at ? Date.parse(at) : Number.NaN;
  return Number.isNaN(time) ? 0 : time;
}

/** The age of something, with the exact time on hover; "not known" without a time. */
export function Age({ at, ago = false }: { at: string | number | null | undefined; ago?: boolean }) {
  const time = milliseconds(at);
  if (time === 0) return <span class="mute">not known</span>;
  const text = age(time, now.value);
  return <time dateTime={new Date(time).toISOString()} title={exact(time)}>{ago && text !== 'now' ? `${text} ago` : text}</time>;
}
