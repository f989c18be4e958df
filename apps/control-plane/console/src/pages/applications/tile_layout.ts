// Lays out tiles: a square for each application, in groups with a title, as large as the place allows. Pure.

export interface TileGroup {
  name: string;
  from: number; // index of its first tile
  count: number;
  top: number; // of its title
}
export interface TileLayout {
  pitch: number; // from one tile to the next, in pixels
  perLine: number;
  groups: TileGroup[];
  height: number;
}

export const TITLE = 20;
const LARGEST = 40;
const SMALLEST = 6;
const GAP = 6; // below a group

function heightBy(counts: readonly number[], perLine: number, pitch: number): number {
  return counts.reduce((sum, count) => sum + TITLE + Math.ceil(count / perLine) * pitch + GAP, 0);
}

/** Places groups in their order. Tiles shrink until all are in sight, down to a size below which they scroll instead. */
export function tileLayout(names: readonly string[], counts: readonly number[], width: number, height: number): TileLayout {
  let pitch = LARGEST;
  const per = () => Math.max(1, Math.floor(width / pitch));
  while (pitch > SMALLEST && heightBy(counts, per(), pitch) > height) --pitch;
  const perLine = per();
  const groups: TileGroup[] = [];
  let [from, top] = [0, 0];
  counts.forEach((count, index) => {
    groups.push({ name: names[index]!, from, count, top });
    from += count;
    top += TITLE + Math.ceil(count / perLine) * pitch + GAP;
  });
  return { pitch, perLine, groups, height: top };
}

function groupOf(layout: TileLayout, tile: number): TileGroup | undefined {
  return layout.groups.find((group) => tile >= group.from && tile < group.from + group.count);
}

/** The left top corner of a tile. */
export function cornerOf(layout: TileLayout, tile: number): { x: number; y: number } {
  const group = groupOf(layout, tile)!;
  const inside = tile - group.from;
  return { x: (inside % layout.perLine) * layout.pitch, y: group.top + TITLE + Math.floor(inside / layout.perLine) * layout.pitch };
}

/** The tile at a point, or -1. */
export function tileAt(layout: TileLayout, x: number, y: number): number {
  const column = Math.floor(x / layout.pitch);
  if (x < 0 || column >= layout.perLine) return -1;
  for (const group of layout.groups) {
    const line = Math.floor((y - group.top - TITLE) / layout.pitch);
    const inside = line * layout.perLine + column;
    if (line >= 0 && inside < group.count && y < group.top + TITLE + Math.ceil(group.count / layout.perLine) * layout.pitch) return group.from + inside;
  }
  return -1;
}

/** The tile above (-1) or below (1), across groups; the same one at the ends. */
export function tileBeside(layout: TileLayout, tile: number, lines: 1 | -1): number {
  const group = groupOf(layout, tile);
  if (!group) return 0;
  const inside = tile - group.from;
  const column = inside % layout.perLine;
  const next = inside + lines * layout.perLine;
  if (next >= 0 && next < group.count) return group.from + next;
  const isLastLine = Math.floor(inside / layout.perLine) === Math.floor((group.count - 1) / layout.perLine);
  if (lines > 0 && !isLastLine) return group.from + group.count - 1;
  const other = layout.groups[layout.groups.indexOf(group) + lines];
  if (!other) return tile;
  const lastLine = Math.floor((other.count - 1) / layout.perLine) * layout.perLine;
  return other.from + Math.min(other.count - 1, (lines > 0 ? 0 : lastLine) + column);
}
