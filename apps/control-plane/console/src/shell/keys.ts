// Keys of all pages. A page adds its own while it is shown. Single keys do nothing in fields.
import { signal } from '@preact/signals';

export interface Key {
  keys: string; // "g a", "?", "Ctrl K"
  text: string;
  run: () => void;
}
const scopes: { title: string; keys: Key[] }[] = [];
export const shownKeys = signal<readonly { title: string; keys: Key[] }[]>([]);
export const singleKeys = signal(localStorage.getItem('keys') !== 'off');

export function setSingleKeys(on: boolean): void {
  singleKeys.value = on;
  localStorage.setItem('keys', on ? 'on' : 'off');
}

/** Adds keys. Returns how to take them away. */
export function addKeys(title: string, keys: Key[]): () => void {
  const scope = { title, keys };
  scopes.push(scope);
  shownKeys.value = [...scopes];
  return () => {
    scopes.splice(scopes.indexOf(scope), 1);
    shownKeys.value = [...scopes];
  };
}

/** Returns the key that was pressed as the table writes it. */
export function pressed(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>): string {
  // Many keyboards have signs such as "[" behind AltGr, which is Ctrl and Alt together, or Option.
  if (event.altKey) return event.key.length === 1 && /[^\p{L}\p{N}\s]/u.test(event.key) ? event.key : '';
  const name = event.key.length === 1 && (event.ctrlKey || event.metaKey) ? event.key.toUpperCase() : event.key;
  return event.ctrlKey || event.metaKey ? `Ctrl ${name}` : name;
}

/** Finds what a key does after the keys before it: a row, "wait" for the rest of a chord, or nothing. */
export function lookUp(rows: readonly Key[], before: string, key: string): Key | 'wait' | null {
  const chord = before ? `${before} ${key}` : key;
  const found = rows.find((row) => row.keys === chord);
  if (found) return found;
  return rows.some((row) => row.keys.startsWith(`${chord} `)) ? 'wait' : null;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function startKeys(): void {
  let before = '';
  let timer: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener('keydown', (event) => {
    const key = pressed(event);
    const isSingle = !key.startsWith('Ctrl ');
    if (event.defaultPrevented || !key || (isSingle && (isTyping(event.target) || !singleKeys.peek()))) return;
    if (isSingle && document.querySelector('dialog[open]')) return;
    // A link or button under the focus has these keys for itself.
    if ((key === 'Enter' || key === ' ') && event.target instanceof Element && event.target.closest('a, button, summary')) return;
    // The page's own keys come before those of the shell.
    const rows = [...scopes].reverse().flatMap((scope) => scope.keys);
    const found = lookUp(rows, before, key);
    clearTimeout(timer);
    before = '';
    if (found === null) return;
    event.preventDefault();
    if (found === 'wait') {
      before = key;
      timer = setTimeout(() => (before = ''), 1_500);
    } else {
      found.run();
    }
  });
}
