// The time by the server's clock: all times that are shown are of servers, and the clock of a device may be wrong.
import { signal } from '@preact/signals';

const LEAST = 5_000; // milliseconds; a smaller difference is none

/** How far the server's clock is ahead of that of this device, in milliseconds. */
export const clockOffset = signal(0);

export function serverNow(): number {
  return Date.now() + clockOffset.peek();
}

/** Takes the header Date of a response that has just come. It was written after `sent`, and is cut to the second. */
export function noteDate(date: string | null, sent: number): void {
  const at = Date.parse(date ?? '');
  if (Number.isNaN(at)) return;
  const [ahead, behind] = [at - Date.now(), sent - (at + 1_000)];
  const offset = ahead > LEAST ? ahead : behind > LEAST ? -behind : 0;
  if (Math.abs(offset - clockOffset.peek()) > 1_000) clockOffset.value = offset;
}
