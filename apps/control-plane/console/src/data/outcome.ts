// What came of an action: four words, so that nobody takes a lost answer for a failure.
import type { Failure } from './request';

export interface Outcome {
  kind: 'done' | 'refused' | 'failed' | 'unknown';
  text: string;
  requestId: string;
}

export function done(text: string): Outcome {
  return { kind: 'done', text, requestId: '' };
}

/** Returns what a failure says about an action: a refusal changed nothing, a lost or unreadable answer leaves it open. */
export function outcomeOf({ kind, status, message: said, requestId }: Failure): Outcome {
  const message = said.charAt(0).toUpperCase() + said.slice(1);
  const isLost = kind === 'unreachable' || (status >= 200 && status < 300) || status === 502 || status === 504;
  if (isLost) return { kind: 'unknown', text: `${message} Look at what is shown, which is read again, before you try again.`, requestId };
  if (status >= 400 && status < 500) return { kind: 'refused', text: `${message}${/[.!?]$/.test(message) ? '' : '.'} Nothing was changed.`, requestId };
  return { kind: 'failed', text: message, requestId };
}
