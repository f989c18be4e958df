import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { failureOf, type Failure } from '../data/request';

export interface Reading<T> {
  value: T | null; // the last one that was read; a new reading keeps it
  failure: Failure | null;
  at: number;
  again: () => void;
}

/** Reads a value when `key` changes and when `again` is called. An answer for an older key is dropped. */
export function useReading<T>(key: string, tried: string, read: (signal: AbortSignal) => Promise<T>): Reading<T> {
  const [state, set] = useState<{ key: string; value: T | null; failure: Failure | null; at: number }>(
    { key, value: null, failure: null, at: 0 });
  const [round, setRound] = useState(0);
  const reader = useRef(read);
  reader.current = read;
  useEffect(() => {
    const control = new AbortController();
    reader.current(control.signal).then(
      (value) => { if (!control.signal.aborted) set({ key, value, failure: null, at: Date.now() }); },
      (error: unknown) => {
        if (control.signal.aborted) return;
        set((old) => ({ key, value: old.key === key ? old.value : null, failure: failureOf(tried, error), at: old.at }));
      });
    return () => control.abort();
  }, [key, round]);
  const again = useCallback(() => setRound((one) => one + 1), []);
  const current = state.key === key ? state : { value: null, failure: null, at: 0 };
  return { value: current.value, failure: current.failure, at: current.at, again };
}
