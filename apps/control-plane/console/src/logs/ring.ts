// The lines of a log: the newest 50,000, older ones are dropped and counted.

export interface Line {
  pod: string;
  container: string;
  time: string; // RFC 3339; empty: not known
  text: string;
  reason?: string; // of an event of a pod
  type?: string; // Normal, Warning
}

export const MOST_LINES = 50_000;

export class Ring {
  #lines: Line[] = [];
  #first = 0; // where the oldest one is, once the ring is full
  dropped = 0;

  constructor(readonly most = MOST_LINES) {}

  get size(): number {
    return this.#lines.length;
  }
  push(line: Line): void {
    if (this.#lines.length < this.most) {
      this.#lines.push(line);
      return;
    }
    this.#lines[this.#first] = line;
    this.#first = (this.#first + 1) % this.most;
    ++this.dropped;
  }
  /** The line at an index from the oldest one on. */
  at(index: number): Line {
    return this.#lines[(this.#first + index) % this.#lines.length]!;
  }
  clear(): void {
    this.#lines = [];
    this.#first = 0;
    this.dropped = 0;
  }
}

/** The indices of the lines with a text, in any case. */
export function hitsOf(ring: Ring, wanted: string): number[] {
  const text = wanted.toLowerCase();
  const hits: number[] = [];
  if (text === '') return hits;
  for (let at = 0; at < ring.size; ++at) if (ring.at(at).text.toLowerCase().includes(text)) hits.push(at);
  return hits;
}

/** What is drawn in one row: a line, or with `wrap` a part of it of `columns` characters. */
export interface LogRow {
  line: number;
  from: number;
}
export function rowsOf(ring: Ring, columns: number): LogRow[] {
  const rows: LogRow[] = [];
  for (let line = 0; line < ring.size; ++line) {
    const { length } = ring.at(line).text;
    for (let from = 0; from === 0 || from < length; from += columns) rows.push({ line, from });
  }
  return rows;
}

const LEVELS: [RegExp, 'bad' | 'warn' | 'mute'][] = [
  [/\b(?:error|fatal|panic|critical|severe)\b|"level":"?(?:error|fatal|5\d)|\blevel=(?:error|fatal)|^E\d{4} /i, 'bad'],
  [/\bwarn(?:ing)?\b|^W\d{4} /i, 'warn'],
  [/\b(?:debug|trace)\b/i, 'mute'],
];
/** How a line is coloured, by the word for its level near its begin. */
export function toneOf(text: string): 'bad' | 'warn' | 'mute' | '' {
  const begin = text.slice(0, 160);
  return LEVELS.find(([pattern]) => pattern.test(begin))?.[1] ?? '';
}

/** The letter of a pod: A, B, … Z, then A again. */
export const letterOf = (index: number): string => String.fromCharCode(65 + (index % 26));

/** A log as the text of a file. */
export function fileOf(ring: Ring): string {
  const lines: string[] = ring.dropped > 0 ? [`# ${ring.dropped} older lines are not in this file`] : [];
  for (let at = 0; at < ring.size; ++at) {
    const { pod, container, time, text } = ring.at(at);
    lines.push([time, [pod, container].filter(Boolean).join('/'), text].filter(Boolean).join(' '));
  }
  return `${lines.join('\n')}\n`;
}
