// Saved views: a name and the whole query of the list. They are kept in this browser.
import { signal } from '@preact/signals';

export interface SavedView {
  name: string;
  query: string; // as in the address, without "?"
  isStart: boolean; // the page that "/" opens; at most one is
}
const PLACE = 'views';
export const MOST_VIEWS = 50;

/** Reads what was kept. What is no view is left out. */
export function readViews(text: string | null): SavedView[] {
  let kept: unknown;
  try {
    kept = JSON.parse(text ?? '[]');
  } catch {
    return [];
  }
  if (!Array.isArray(kept)) return [];
  const views: SavedView[] = [];
  for (const one of kept as Partial<SavedView>[]) {
    if (typeof one?.name !== 'string' || typeof one.query !== 'string' || one.name === '') continue;
    views.push({ name: one.name, query: one.query, isStart: one.isStart === true && !views.some((other) => other.isStart) });
  }
  return views.slice(0, MOST_VIEWS);
}

/** Adds a view, or gives the one with this name another query. Another one than the most that are kept is not added. */
export function withView(views: readonly SavedView[], name: string, query: string): SavedView[] {
  const old = views.find((one) => one.name === name);
  if (!old && views.length >= MOST_VIEWS) return [...views];
  const others = views.filter((one) => one !== old);
  return [...others, { name, query, isStart: old?.isStart ?? false }].sort((a, b) => a.name.localeCompare(b.name));
}

/** Makes a view the start page, or none when it is the one already. */
export function withStart(views: readonly SavedView[], name: string): SavedView[] {
  return views.map((one) => ({ ...one, isStart: one.name === name && !one.isStart }));
}

export const savedViews = signal<readonly SavedView[]>(typeof localStorage === 'undefined' ? [] : readViews(localStorage.getItem(PLACE)));
/** Changes the views as they are kept now: another page may have changed them since this one read them. */
export function changeViews(change: (views: readonly SavedView[]) => SavedView[]): void {
  savedViews.value = change(readViews(localStorage.getItem(PLACE)));
  localStorage.setItem(PLACE, JSON.stringify(savedViews.value));
}
// Sent to all other pages of the browser.
globalThis.addEventListener?.('storage', (event: Event) => {
  const { key, newValue } = event as StorageEvent;
  if (key === PLACE) savedViews.value = readViews(newValue);
});

export const addressOf = (view: SavedView): string => (view.query ? `/applications?${view.query}` : '/applications');
/** What "/" opens. */
export function startAddress(): string {
  const start = savedViews.peek().find((one) => one.isStart);
  return start ? addressOf(start) : '/applications';
}
