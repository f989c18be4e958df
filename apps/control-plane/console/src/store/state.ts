// The data of the open console. Pages read it; data/load.ts and the stream fill it.
import { signal } from '@preact/signals';

import type { Failure } from '../data/request';
import { ApplicationStore } from './applications';

export const applications = new ApplicationStore();

export interface LoadState {
  state: 'never' | 'loading' | 'done' | 'failed';
  at: number; // when the last whole reading was complete; 0: never
  failure: Failure | null;
}
export const loadState = signal<LoadState>({ state: 'never', at: 0, failure: null });
/** Counts whole readings, which may add and remove rows. */
export const readings = signal(0);
/** Moves at most once a second while rows change, for what counts over all rows. */
export const pulse = signal(0);
const PACE = 1_000;
let timer: ReturnType<typeof setTimeout> | undefined;
let last = 0;
/** Rows have changed. */
export function rowsChanged(): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    last = Date.now();
    pulse.value++;
  }, Math.max(0, last + PACE - Date.now()));
}
/** Runtimes that are silent, and since when by the server's clock, in milliseconds. */
export const offline = signal<ReadonlyMap<string, number>>(new Map());
