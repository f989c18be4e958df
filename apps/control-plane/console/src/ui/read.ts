import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { failureOf, type Failure } from '../data/request';
import { sessionEnded } from '../shell/session';

export interface Reading<T> {
  value: T | null; // the last one that was read; a new reading keeps it
  failure: Failure | null;
  at: number;
  again: () => void;
}

const PATIENCE = 20_000; // milliseconds, after which a reading is given up for the next one

/**
 * Runs one reading at a time. A request during a reading starts another one after it. If each request began the reading
 * again, it would never end where changes come faster than readings.
 */
export class Readings {
  #control: AbortController | null = null;
  #begunAt = 0;
  #isDue = false;

  /** `read` says by itself what came of it, and resolves then. Nothing counts any more once its signal has aborted. */
  constructor(readonly read: (signal: AbortSignal) => Promise<void>) {}

  again(): void {
    if (this.#control && Date.now() - this.#begunAt < PATIENCE) this.#isDue = true;
    else void this.#run();
  }
  stop(): void {
    this.#isDue = false;
    this.#control?.abort();
    this.#control = null;
  }

  async #run(): Promise<void> {
    this.stop();
    const control = new AbortController();
    this.#control = control;
    this.#begunAt = Date.now();
    await this.read(control.signal);
    if (this.#control !== control) return;
    this.#control = null;
    if (this.#isDue) void this.#run();
  }
}

/** Reads a value when `key` changes, when `again` is called, and after signing in again what was refused for the lack of it.
 * An answer for an older key is dropped. */
export function useReading<T>(key: string, tried: string, read: (signal: AbortSignal) => Promise<T>): Reading<T> {
  const [state, set] = useState<{ key: string; value: T | null; failure: Failure | null; at: number }>(
    { key, value: null, failure: null, at: 0 });
  const reader = useRef(read);
  reader.current = read;
  const readings = useRef<Readings | null>(null);
  useEffect(() => {
    const own = new Readings((signal) => reader.current(signal).then(
      (value) => { if (!signal.aborted) set({ key, value, failure: null, at: Date.now() }); },
      (error: unknown) => {
        if (signal.aborted) return;
        set((old) => ({ key, value: old.key === key ? old.value : null, failure: failureOf(tried, error), at: old.at }));
      }));
    readings.current = own;
    own.again();
    return () => own.stop();
  }, [key]);
  const again = useCallback(() => readings.current?.again(), []);
  const current = state.key === key ? state : { value: null, failure: null, at: 0 };
  const isEnded = sessionEnded.value;
  useEffect(() => {
    if (!isEnded && current.failure?.kind === 'signed-out') again();
  }, [isEnded]);
  return { value: current.value, failure: current.failure, at: current.at, again };
}

/** Reads again when `of` is another one than before. It is not the key of the reading: each change would begin
 * the reading again, which would never end where changes come faster than readings. */
export function useAgainWith(of: string | null, again: () => void): void {
  const before = useRef(of);
  useEffect(() => {
    if (before.current !== of) again();
    before.current = of;
  }, [of]);
}
