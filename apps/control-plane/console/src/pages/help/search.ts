// The search in the documents: all words, each at the begin of a word; headings weigh more. Pure.
import { plainText, type Page } from './document';

/** A section as the search sees it. */
interface Entry {
  address: string;
  title: string;
  trail: readonly string[]; // the page, and the sections that the section is in
  own: string; // the title in small letters
  above: string;
  text: string;
  small: string; // the text in small letters
}
export interface Found {
  address: string;
  title: string;
  trail: readonly string[];
  snippet: string;
  score: number;
}
export type Index = readonly Entry[];

/** "/help/PAGE#ANCHOR". */
export function sectionAddress(page: string, anchor: string): string {
  return `/help/${page}${anchor ? `#${encodeURIComponent(anchor)}` : ''}`;
}

export function indexOf(pages: readonly Page[]): Index {
  return pages.flatMap(({ path, title: page, sections }) => {
    const open: { depth: number; title: string }[] = [];
    return sections.map(({ at, depth, title, blocks }) => {
      while (open.length > 0 && open.at(-1)!.depth >= depth) open.pop();
      const trail = open.map((one) => one.title);
      open.push({ depth, title });
      const text = plainText(blocks).replace(/\s+/g, ' ');
      return { address: sectionAddress(path, at), title: title || page, trail, own: (title || page).toLowerCase(), above: trail.join('\n').toLowerCase(), text, small: text.toLowerCase() };
    });
  });
}

/** The words of a query, in small letters, each once. */
export function wordsOf(text: string): string[] {
  return [...new Set(text.toLowerCase().split(/[\s,;:!?()"'`]+/).filter((word) => /[\p{L}\p{N}]/u.test(word)))];
}

const LETTER = /[\p{L}\p{N}]/u;
/** Returns where a word of the text begins with this one; -1: nowhere. */
function placeOf(text: string, word: string, from = 0): number {
  for (let at = text.indexOf(word, from); at >= 0; at = text.indexOf(word, at + 1)) {
    if (at === 0 || !LETTER.test(text[at - 1]!) || !LETTER.test(word[0]!)) return at;
  }
  return -1;
}

const [OWN, ABOVE, TEXT, AGAIN] = [20, 6, 2, 0.5];
const MOST_AGAIN = 6;
/** What a word counts in a section; 0: it does not have it. */
function weight({ own, above, small }: Entry, word: string): number {
  let sum = 0;
  const at = placeOf(own, word);
  // A whole word is more than the begin of one, and a short title more than a long one.
  if (at >= 0) sum += OWN + (LETTER.test(own[at + word.length] ?? ' ') ? 0 : OWN / 4) + OWN / own.length;
  if (placeOf(above, word) >= 0) sum += ABOVE;
  let from = placeOf(small, word);
  if (from >= 0) sum += TEXT;
  for (let count = 0; from >= 0 && count < MOST_AGAIN; ++count) {
    from = placeOf(small, word, from + word.length);
    if (from >= 0) sum += AGAIN;
  }
  return sum;
}

const BEFORE = 60;
const LENGTH = 200;
/** A piece of the text around the first of the words. */
function snippetOf({ text, small }: Entry, words: readonly string[]): string {
  const places = words.map((word) => placeOf(small, word)).filter((at) => at >= 0);
  const first = places.length > 0 ? Math.min(...places) : 0;
  const begin = first <= BEFORE ? 0 : text.indexOf(' ', first - BEFORE) + 1;
  const piece = text.slice(begin, begin + LENGTH);
  return `${begin > 0 ? '… ' : ''}${piece}${begin + LENGTH < text.length ? ' …' : ''}`;
}

/** Returns the sections that have all words, the best first. */
export function search(index: Index, text: string): Found[] {
  const words = wordsOf(text);
  if (words.length === 0) return [];
  const found: { entry: Entry; score: number }[] = [];
  for (const entry of index) {
    let score = 0;
    for (const word of words) {
      const one = weight(entry, word);
      score = one > 0 && score >= 0 ? score + one : -1;
      if (score < 0) break;
    }
    if (score > 0) found.push({ entry, score });
  }
  return found.sort((a, b) => b.score - a.score).map(({ entry, score }) => ({ address: entry.address, title: entry.title, trail: entry.trail, snippet: snippetOf(entry, words), score }));
}

/** The words that no section has: without them something may be found. */
export function unknownWords(index: Index, text: string): string[] {
  return wordsOf(text).filter((word) => !index.some((entry) => weight(entry, word) > 0));
}

/** Splits a text into pieces, those at odd places are words of the query. */
export function marked(text: string, words: readonly string[]): string[] {
  const small = text.toLowerCase();
  const pieces: string[] = [];
  let done = 0;
  for (;;) {
    let [at, length] = [-1, 0];
    for (const word of words) {
      const place = placeOf(small, word, done);
      if (place >= 0 && (at < 0 || place < at || (place === at && word.length > length))) [at, length] = [place, word.length];
    }
    if (at < 0) return [...pieces, text.slice(done)];
    pieces.push(text.slice(done, at), text.slice(at, at + length));
    done = at + length;
  }
}
