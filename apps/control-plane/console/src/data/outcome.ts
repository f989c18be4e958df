// What came of an action: four words, so that nobody takes a lost answer for a failure.
import type { Failure } from './request';

export interface Outcome {
  kind: 'done' | 'refused' | 'failed' | 'unknown';
  text: string;
  requestId: string;
  by?: string; // who refused: "Argo CD"
  allows?: string; // what would allow it, as a sentence
  isOutdated?: boolean; // the page has to be loaded again
  help?: string; // words that find the documents about it
}

export function done(text: string): Outcome {
  return { kind: 'done', text, requestId: '' };
}

/** Thrown by an action that knows itself what came of it. */
export class OutcomeError extends Error {
  constructor(readonly outcome: Outcome) {
    super(outcome.text);
  }
}

/** Returns a text as a sentence: a capital at its begin and a sign at its end. */
export function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return begun === '' || /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** Returns what a failure says about an action: a refusal changed nothing, a lost or unreadable answer leaves it open. */
export function outcomeOf({ kind, status, message: said, requestId }: Failure): Outcome {
  const message = said.charAt(0).toUpperCase() + said.slice(1);
  // The control plane says 503, too, when it lost its database or its patience in the middle of a commit.
  const isLost = kind === 'unreachable' || (status >= 200 && status < 300) || (status >= 502 && status <= 504);
  if (isLost) return { kind: 'unknown', text: `${sentence(message)} Look at what is shown, which is read again, before you try again.`, requestId };
  if (status >= 400 && status < 500) return { kind: 'refused', text: `${sentence(message)} Nothing was changed.`, requestId };
  return { kind: 'failed', text: message, requestId };
}
