// The words of Kubernetes and Argo for states, in the order of their severity.

export type Tone = 'ok' | 'run' | 'warn' | 'bad' | 'mute';
export type Shape = 'tick' | 'arc' | 'cross' | 'bar' | 'pause' | 'question' | 'arrows' | 'cut';
export interface State {
  word: string;
  shape: Shape;
  tone: Tone;
  severity: number; // the highest is looked at first
}

const STATES: Record<string, Omit<State, 'word'>> = {
  Degraded: { shape: 'cross', tone: 'bad', severity: 9 },
  Failed: { shape: 'cross', tone: 'bad', severity: 9 },
  Error: { shape: 'cross', tone: 'bad', severity: 9 },
  Missing: { shape: 'bar', tone: 'warn', severity: 8 },
  Offline: { shape: 'cut', tone: 'bad', severity: 8 },
  OutOfSync: { shape: 'arrows', tone: 'warn', severity: 7 },
  Terminating: { shape: 'arc', tone: 'warn', severity: 6 },
  Terminated: { shape: 'cross', tone: 'warn', severity: 6 },
  Progressing: { shape: 'arc', tone: 'run', severity: 5 },
  Running: { shape: 'arc', tone: 'run', severity: 5 },
  Syncing: { shape: 'arc', tone: 'run', severity: 5 },
  Pending: { shape: 'arc', tone: 'run', severity: 5 },
  Suspended: { shape: 'pause', tone: 'mute', severity: 4 },
  Disabled: { shape: 'pause', tone: 'mute', severity: 4 },
  Expired: { shape: 'cut', tone: 'warn', severity: 4 },
  Unknown: { shape: 'question', tone: 'mute', severity: 3 },
  Healthy: { shape: 'tick', tone: 'ok', severity: 0 },
  Synced: { shape: 'tick', tone: 'ok', severity: 0 },
  Succeeded: { shape: 'tick', tone: 'ok', severity: 0 },
  Active: { shape: 'tick', tone: 'ok', severity: 0 },
  Online: { shape: 'tick', tone: 'ok', severity: 0 },
};

function spelled(text: string): string {
  if (text !== text.toUpperCase()) return text;
  return text.toLowerCase().split('_').map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join('');
}

// Ten thousand rows have a handful of states: one text for each, which is also written once.
const words = new Map<string, string>();
const MOST_WORDS = 1_000; // a peer can send any

/** Writes a state as its own project does: OUT_OF_SYNC and OutOfSync are OutOfSync. An empty one is Unknown. */
export function word(text: string | null | undefined): string {
  if (!text) return 'Unknown';
  let known = words.get(text);
  if (known === undefined) {
    if (words.size >= MOST_WORDS) words.clear();
    words.set(text, (known = spelled(text)));
  }
  return known;
}

/** Returns how a state is shown. A word that is not known is shown as it is, with a question mark. */
export function state(text: string | null | undefined): State {
  const name = word(text);
  return { word: name, ...(STATES[name] ?? STATES.Unknown!) };
}
