// The address is the whole state of the view: the path names the thing, the query names the view. This file alone
// writes addresses; it keeps parameters that it does not know.
import { computed, signal } from '@preact/signals';

export interface Place {
  path: string;
  query: ReadonlyMap<string, string>;
}

/** Splits an address of our own origin. */
export function place(address: string): Place {
  const [path = '/', query = ''] = address.split('#')[0]!.split(/\?(.*)/s);
  return { path, query: new Map(new URLSearchParams(query)) };
}

/** Makes an address. Empty parameters are left out; the text stays readable. */
export function address(path: string, query: ReadonlyMap<string, string>): string {
  const parts = [...query].filter(([, value]) => value !== '')
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value).replace(/%(3A|2C|2F)/gi, decodeURIComponent).replaceAll('%20', '+')}`);
  return parts.length > 0 ? `${path}?${parts.join('&')}` : path;
}

/** Compares a path with a pattern as "/runtimes/:name"; "/help/*page" takes the whole rest. Returns the decoded parameters, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = path.replace(/(.)\/$/, '$1').split('/');
  if (wanted.at(-1)!.startsWith('*')) given.push(given.splice(wanted.length - 1).join('/'));
  if (wanted.length !== given.length) return null;
  const parameters: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const segment = given[index]!;
    if (!/^[:*]/.test(part)) {
      if (part !== segment) return null;
      continue;
    }
    try {
      parameters[part.slice(1)] = decodeURIComponent(segment);
    } catch {
      return null;
    }
    if (parameters[part.slice(1)] === '') return null;
  }
  return parameters;
}

/** Returns whether a path is that of a thing, or of a page below it: "/a/shop/tree" is of "/a/shop", "/a/shop-2" is not. */
export function isOf(path: string, thing: string): boolean {
  return path === thing || path.startsWith(`${thing}/`);
}

/** Returns an address of our own pages for a parameter such as "to", else "/". No other site and no script gets in. */
export function ownAddress(text: string | undefined): string {
  return text && /^\/(?![/\\])[^\\\s]*$/.test(text) && !text.startsWith('/sign-in') ? text : '/';
}

export const here = signal<Place>(typeof location === 'undefined' ? place('/') : place(location.pathname + location.search));

/** The path alone: who needs no more is not drawn again with each key in a filter. */
export const herePath = computed(() => here.value.path);

/** Opens an address: a new entry of the history, or with `replace` the same one. */
export function navigate(to: string, { replace = false } = {}): void {
  const now = here.peek();
  if (to === address(now.path, now.query)) return;
  if (!replace) rememberScroll();
  history[replace ? 'replaceState' : 'pushState']({}, '', to);
  here.value = place(to);
}

/** Changes parameters of the view and keeps all others. */
export function setQuery(changes: Record<string, string>, { replace = true } = {}): void {
  const { path, query } = here.peek();
  const next = new Map(query);
  for (const [key, value] of Object.entries(changes)) next.set(key, value);
  navigate(address(path, next), { replace });
}

const SCROLLER = '[data-scroller]';

/** Keeps the scroll position in the entry of the history that is left. */
function rememberScroll(): void {
  const scroller = document.querySelector(SCROLLER);
  if (scroller) history.replaceState({ ...history.state, scroll: scroller.scrollTop }, '');
}
/** Returns the position that was kept for this entry. */
export function rememberedScroll(): number {
  return (history.state as { scroll?: number } | null)?.scroll ?? 0;
}

export function startRouter(): void {
  addEventListener('popstate', () => {
    here.value = place(location.pathname + location.search);
  });
  addEventListener('pagehide', rememberScroll);
  // Links are native; a plain click stays in the page.
  document.addEventListener('click', (event) => {
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (link.origin !== location.origin || link.target || link.hasAttribute('download')) return;
    if (link.pathname.startsWith('/console/api')) return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash);
  });
}
