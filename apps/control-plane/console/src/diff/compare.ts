// Compares two manifests. Pure: it runs in the page for small ones and in a worker for large ones.
import { diffArrays } from 'diff';

import { dropNoise } from './noise';
import { readTree, yamlLines, type Tree } from './tree';

export interface Task {
  left: string; // JSON, or with `isText` the text of a file; empty: there is none
  right: string;
  isLeftText: boolean;
  isRightText: boolean;
  isSecret: boolean; // its values are numbers, see schema.graphql
  noise: boolean; // show it
}

/** Lines of a text: an array of them, or what PackedLines makes of one text. */
export interface Lines {
  readonly length: number;
  at(index: number): string | undefined;
}

/** Lines that lie in one text, which copies faster between threads than many. */
export class PackedLines implements Lines {
  /** `ends` has the place behind each line. */
  constructor(readonly text: string, readonly ends: Int32Array) {}

  get length(): number {
    return this.ends.length;
  }
  at(index: number): string | undefined {
    return index < this.ends.length ? this.text.slice(index === 0 ? 0 : this.ends[index - 1]! + 1, this.ends[index]) : undefined;
  }
}

export function packed(lines: readonly string[]): PackedLines {
  const ends = new Int32Array(lines.length);
  let end = -1;
  lines.forEach((line, index) => { ends[index] = end += line.length + 1; });
  return new PackedLines(lines.join('\n'), ends);
}

export interface Comparison {
  left: Lines;
  right: Lines;
  runs: [kind: '=' | '-' | '+', count: number][] | null; // null: there are too many differences to line them up
  hidden: number; // lines that the noise switch hides
  problem: string; // a side that can't be read; else empty
  counts: [left: number, right: number]; // lines, also of sides that are too large to be shown
  longest: number; // characters of the longest line
}

const MOST_EDITS = 20_000; // their number decides the time of the search
const PATIENCE = 5_000; // milliseconds
export const MOST_LINES = 200_000; // of both sides; more are counted alone

/** Replaces the numbers that stand for the values of a Secret by what they tell: equal or not. */
function hideValues(left: Tree | null, right: Tree | null): void {
  for (const part of ['data', 'stringData']) {
    const [mine, theirs] = [left, right].map((root) => {
      const map = root instanceof Map ? root.get(part) : undefined;
      return map instanceof Map ? map : new Map<string, Tree>();
    }) as [Map<string, Tree>, Map<string, Tree>];
    for (const key of new Set([...mine.keys(), ...theirs.keys()])) {
      const [a, b] = [mine.get(key), theirs.get(key)];
      const isEqual = a === b;
      if (a !== undefined) mine.set(key, b === undefined ? '"(hidden)"' : isEqual ? '"(equal)"' : '"(differs, left)"');
      if (b !== undefined) theirs.set(key, a === undefined ? '"(hidden)"' : isEqual ? '"(equal)"' : '"(differs, right)"');
    }
  }
}

/** Returns runs of equal, removed and added lines. */
export function runsOf(left: readonly string[], right: readonly string[]): Comparison['runs'] {
  // Numbers compare faster than texts.
  const numbers = new Map<string, number>();
  const numbered = (lines: readonly string[]) => lines.map((line) => {
    const known = numbers.get(line);
    if (known !== undefined) return known;
    numbers.set(line, numbers.size);
    return numbers.size - 1;
  });
  const found = diffArrays(numbered(left), numbered(right), { maxEditLength: MOST_EDITS, timeout: PATIENCE });
  if (!found) return null;
  return found.map(({ added, removed, count }) => [added ? '+' : removed ? '-' : '=', count]);
}

interface Sides {
  left: Tree | null;
  right: Tree | null;
  hidden: number;
  problem: string;
}

/** Reads both sides as they are shown. */
export function treesOf(task: Task): Sides {
  const problems: string[] = [];
  const read = (text: string, isText: boolean, side: string): Tree | null => {
    if (isText || text === '') return null;
    try {
      return readTree(text);
    } catch (error) {
      problems.push(`The manifest on the ${side} can't be read: ${(error as Error).message}`);
      return null;
    }
  };
  const [left, right] = [read(task.left, task.isLeftText, 'left'), read(task.right, task.isRightText, 'right')];
  if (task.isSecret) hideValues(left, right);
  return { left, right, hidden: task.noise ? 0 : dropNoise(left, right), problem: problems.join(' ') };
}

/** Compares in one go. Both sides are arrays of lines. */
export function compare(task: Task): Comparison & { left: string[]; right: string[] } {
  const { left, right, hidden, problem } = treesOf(task);
  const lines = (tree: Tree | null, text: string, isText: boolean) => (tree ? yamlLines(tree) : isText && text !== '' ? text.replace(/\n$/, '').split('\n') : []);
  const sides = { left: lines(left, task.left, task.isLeftText), right: lines(right, task.right, task.isRightText) };
  const counts: Comparison['counts'] = [sides.left.length, sides.right.length];
  const found = { hidden, problem, counts };
  if (counts[0] + counts[1] > MOST_LINES) return { ...found, left: [], right: [], runs: null, longest: 0 };
  const longest = [...sides.left, ...sides.right].reduce((most, line) => Math.max(most, line.length), 0);
  return { ...found, ...sides, runs: runsOf(sides.left, sides.right), longest };
}
