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
/** Counts frames with changes, for what shows numbers over all rows. */
export const frames = signal(0);
/** Runtimes that are silent. */
export const offline = signal<ReadonlySet<string>>(new Set());
