// The stream of changes: GET /console/api/v1/stream. It reconnects by itself and resumes behind the last event. Runs in
// the worker, or in the page where there is no SharedWorker.
import { SseParser } from './sse';

export const STREAM = '/console/api/v1/stream';
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 15_000;
const MOST_TOPICS = 32; // of a stream, by the server
const SILENCE = 25_000; // the server sends a comment every 15 s
const LOOK_AGAIN = 60_000; // milliseconds, for a stream where there was none

export type Live =
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'unavailable' } // this server has no stream
  | { state: 'signed-out' }
  | { state: 'lost'; since: number; retryAt: number };

/** What a stream tells its page. */
export type Message = { kind: 'state'; live: Live } | { kind: 'event'; type: string; data: unknown };

/** The topics that a stream asks for, in one order. Those of single Applications come last and are cut first. */
export function topicsOf(topics: readonly string[]): string[] {
  const isSingle = (topic: string) => Number(topic.startsWith('app:'));
  return [...new Set(topics)].sort((a, b) => isSingle(a) - isSingle(b) || (a < b ? -1 : 1)).slice(0, MOST_TOPICS);
}

export class Stream {
  #topics: string[] = [];
  #cursor = '';
  #control: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wait = FIRST_WAIT;
  #lostSince = 0;
  #heardAt = 0; // when bytes came last
  #isEnded = false; // the session is: another try would end, too
  #wasLive = false; // this server has a stream, whatever a proxy before it says
  #isStale = false; // it has said that its data are old, and not yet that they are read again

  constructor(readonly tell: (message: Message) => void) {}

  /** Streams these topics. Others than before go on behind the last event: a change of all topics has a place in one order. */
  follow(topics: readonly string[]): void {
    const wanted = topicsOf(topics);
    if (this.#control && wanted.join() === this.#topics.join()) return;
    this.#topics = wanted;
    if (wanted.length === 0) this.#cursor = '';
    this.stop();
    if (wanted.length > 0) void this.#run();
  }
  /** Tries again now. */
  retry(): void {
    this.stop();
    this.#wait = FIRST_WAIT;
    if (this.#topics.length > 0) void this.#run();
  }
  stop(): void {
    clearTimeout(this.#timer);
    this.#control?.abort();
    this.#control = null;
  }

  async #run(): Promise<void> {
    const control = new AbortController();
    this.#control = control;
    this.#isEnded = false;
    const status = await this.#read(control).catch(() => 0);
    if (control !== this.#control) return; // stopped
    this.#control = null;
    if (!this.#wasLive && (status === 404 || status === 405)) {
      this.#timer = setTimeout(() => void this.#run(), LOOK_AGAIN);
      return this.tell({ kind: 'state', live: { state: 'unavailable' } });
    }
    if (status === 401 || this.#isEnded) return this.tell({ kind: 'state', live: { state: 'signed-out' } });
    this.#lostSince ||= this.#heardAt || Date.now();
    const wait = this.#wait * (0.8 + Math.random() * 0.4);
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
    this.tell({ kind: 'state', live: { state: 'lost', since: this.#lostSince, retryAt: Date.now() + wait } });
    this.#timer = setTimeout(() => void this.#run(), wait);
  }

  /** Returns the status of a response that was no stream; 0 when a stream has ended. */
  async #read(control: AbortController): Promise<number> {
    let silence = setTimeout(() => control.abort(), SILENCE);
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (this.#cursor) headers['Last-Event-ID'] = this.#cursor;
      const topics = this.#topics.map(encodeURIComponent).join(',');
      const response = await fetch(`${STREAM}?topics=${topics}`, { headers, signal: control.signal, cache: 'no-store' });
      const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream');
      if (!response.ok || !isStream || !response.body) return response.ok ? 404 : response.status;
      this.tell({ kind: 'state', live: { state: 'live' } });
      this.#wasLive = true;
      this.#lostSince = 0;
      this.#heardAt = Date.now();
      this.#wait = FIRST_WAIT;
      const parser = new SseParser(this.#cursor);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let isFirst = true; ; isFirst = false) {
        const { value, done } = await reader.read();
        if (done) return 0;
        this.#heardAt = Date.now();
        clearTimeout(silence);
        silence = setTimeout(() => control.abort(), SILENCE);
        const events = parser.feed(value);
        // A stream begins with "stale" where that is so; "fresh" goes only to those that were open before.
        if (isFirst && this.#isStale && events.every(({ type }) => type !== 'stale')) this.#take('fresh', '{}', this.#cursor);
        for (const event of events) this.#take(event.type, event.data, event.id);
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #take(type: string, data: string, id: string): void {
    let content: unknown;
    try {
      content = JSON.parse(data);
    } catch {
      return; // not of this protocol
    }
    this.#cursor = id;
    if (type === 'end') this.#isEnded = true;
    if (type === 'stale' || type === 'fresh') this.#isStale = type === 'stale';
    this.tell({ kind: 'event', type, data: content });
  }
}
