// Sentences for screen readers: one region, at most one sentence in 10 seconds; later ones replace what waits.
import { signal } from '@preact/signals';

const PAUSE = 10_000;
export const announcement = signal('');
let last = 0;
let waiting = '';
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  waiting = text;
  if (timer !== undefined) return;
  timer = setTimeout(() => {
    timer = undefined;
    last = Date.now();
    announcement.value = waiting;
  }, Math.max(0, last + PAUSE - Date.now()));
}
