// Reads a log of a runtime as server-sent events, and goes on behind the last line when the connection ends.
import { requestIdOf } from '../data/request';
import { SseParser } from '../live/sse';
import type { Line } from './ring';

export type ReaderState =
  | { kind: 'opening' }
  | { kind: 'reading' }
  | { kind: 'ended' } // all that there is has been read
  | { kind: 'waiting'; message: string; retryAt: number; requestId: string }
  | { kind: 'failed'; message: string; status: number; requestId: string };

export interface Reader {
  /** Opens the stream. `since` is the time of the last line that is there already. Rejects when there is no answer. */
  open(since: string, signal: AbortSignal): Promise<Response>;
  take(lines: Line[]): void;
  trouble(message: string): void;
  state(state: ReaderState): void;
}

const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 15_000;
const SILENCE = 50_000; // milliseconds; the runtime sends a comment every 20 s
// What the runtime says when another connection helps: the token has ended, or the runtime restarts.
const PASSING = ['Unauthorized', 'the runtime restarts'];

// Colours and movements of a terminal (ECMA-48, 5.4).
const TERMINAL = /\u001b\[[0-?]*[ -/]*[@-~]/g;

/** Takes what an event says. Exported for tests. */
export function lineOf(data: string): Line | null {
  try {
    const { podName, containerName, timestamp, content, reason, type } = JSON.parse(data) as Record<string, unknown>;
    const text = (value: unknown) => (typeof value === 'string' ? value : '');
    return { pod: text(podName), container: text(containerName), time: text(timestamp), text: text(content).replace(TERMINAL, ''), ...(reason !== undefined && { reason: text(reason), type: text(type) }) };
  } catch {
    return null;
  }
}

const KNOWN = 5_000; // lines
const OVERLAP = 5_000; // milliseconds: pods are not in step

/** After a connection ended, the last lines come again. They are known by their whole content. */
export class Behind {
  #newest = 0;
  #limit = 0;
  #known = new Set<string>();

  /** Begins another connection. Returns the time from which to read; empty: all. */
  again(): string {
    this.#limit = this.#newest;
    return this.#newest === 0 ? '' : new Date(this.#newest - OVERLAP).toISOString();
  }
  /** Returns whether a line did not come over an earlier connection. */
  isNew(line: Line): boolean {
    const time = Date.parse(line.time) || 0;
    const key = `${line.pod}\n${line.container}\n${line.time}\n${line.text}`;
    if (time > 0 && time <= this.#limit && this.#known.has(key)) return false;
    this.#newest = Math.max(this.#newest, time);
    this.#known.add(key);
    if (this.#known.size > KNOWN) this.#known.delete(this.#known.values().next().value!);
    return true;
  }
}

async function readOnce(reader: Reader, behind: Behind, signal: AbortSignal): Promise<'ended' | 'broken' | { status: number; message: string; requestId: string }> {
  // A network that has changed under the page tells nobody that the connection is gone.
  const silence = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE);
  };
  heard();
  try {
    return await readStream(reader, behind, AbortSignal.any([signal, silence.signal]), heard);
  } catch (error) {
    if (silence.signal.aborted) throw new Error('Nothing was heard of the runtime for 50 seconds.');
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function readStream(reader: Reader, behind: Behind, signal: AbortSignal, heard: () => void): ReturnType<typeof readOnce> {
  const response = await reader.open(behind.again(), signal);
  if (!response.ok || !response.headers.get('Content-Type')?.startsWith('text/event-stream') || !response.body) {
    const said = (await response.json().catch(() => null)) as { message?: string; error?: string } | null;
    return { status: response.status, requestId: requestIdOf(response), message: said?.message ?? said?.error ?? (response.ok ? 'The answer is no log.' : `The runtime answered ${response.status}.`) };
  }
  reader.state({ kind: 'reading' });
  let lines: Line[] = [];
  let isOver = false;
  let hasEnded = false;
  const parser = new SseParser();
  const stream = response.body.getReader();
  for (const decoder = new TextDecoder(); !isOver;) {
    const { done, value } = await stream.read();
    if (done) return 'broken';
    heard();
    for (const event of parser.feed(decoder.decode(value, { stream: true }))) {
      const line = event.type === 'log' ? lineOf(event.data) : null;
      if (line && behind.isNew(line)) lines.push(line);
      if (event.type === 'end') isOver = true;
      if (event.type !== 'trouble') continue;
      if (PASSING.includes(event.data)) hasEnded = true;
      else reader.trouble(event.data);
    }
    if (lines.length > 0) reader.take(lines);
    lines = [];
  }
  return hasEnded ? 'broken' : 'ended';
}

/** Reads until the log ends, is refused, or `signal` is aborted. */
export async function read(reader: Reader, signal: AbortSignal): Promise<void> {
  const behind = new Behind();
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    reader.state({ kind: 'opening' });
    let [message, requestId] = ['The connection to the runtime ended.', ''];
    try {
      const end = await readOnce(reader, behind, signal);
      if (signal.aborted) return;
      if (end === 'ended') return reader.state({ kind: 'ended' });
      if (typeof end === 'object') {
        if (end.status !== 429 && end.status < 500) return reader.state({ kind: 'failed', ...end });
        ({ message, requestId } = end);
      } else {
        wait = FIRST_WAIT;
      }
    } catch (error) {
      if (signal.aborted) return;
      message = (error as Error).message;
    }
    reader.state({ kind: 'waiting', message, requestId, retryAt: Date.now() + wait });
    await new Promise<void>((done) => {
      const timer = setTimeout(done, wait);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        done();
      }, { once: true });
    });
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
}
