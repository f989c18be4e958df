// The list as a picture of health: a tile for each application, on a canvas. Readers get a table of the same.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { theme } from '../../shell/theme';
import { applications, offline, pulse } from '../../store/state';
import { state, type Tone } from '../../store/states';
import { AsOf } from '../../ui/as_of';
import { pathOfIcon } from '../../ui/icons';
import { Status } from '../../ui/status';
import { Age, minute } from '../../ui/time';
import { clusterName } from './columns';
import { cornerOf, tileAt, tileBeside, tileLayout, TITLE, type TileGroup, type TileLayout } from './tile_layout';
import type { ListProps } from './use_row';

type Colours = Record<Tone | 'ground', string>;
const TONES: readonly Tone[] = ['ok', 'run', 'warn', 'bad', 'mute'];

/** Reads the colours that the theme has now: a canvas knows no tokens. */
function coloursAt(probe: HTMLElement): Colours {
  const colours = { ground: getComputedStyle(document.body).backgroundColor } as Colours;
  for (const tone of TONES) {
    probe.className = `sr ${tone}`;
    colours[tone] = getComputedStyle(probe).color;
  }
  return colours;
}

/** Draws the tile of a state once; the many are copies. */
function sprite(word: string, size: number, scale: number, colours: Colours): HTMLCanvasElement {
  const { shape, tone } = state(word);
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = Math.max(1, Math.round(size * scale));
  const paint = canvas.getContext('2d')!;
  paint.fillStyle = colours[tone];
  if (tone === 'ok') paint.globalAlpha = 0.4;
  paint.fillRect(0, 0, canvas.width, canvas.height);
  if (tone === 'ok') return canvas;
  const glyph = Math.min(size, 18);
  const unit = (glyph / 16) * scale;
  paint.translate((canvas.width - glyph * scale) / 2, (canvas.height - glyph * scale) / 2);
  paint.scale(unit, unit);
  paint.strokeStyle = colours.ground;
  paint.lineWidth = size < 12 ? 2.6 : 2;
  paint.lineCap = paint.lineJoin = 'round';
  paint.stroke(new Path2D(pathOfIcon(shape)));
  return canvas;
}

interface Group {
  name: string;
  rows: number[];
}
/** Rows by a value of theirs; groups by name, rows in the order that they have. */
export function grouped(rows: readonly number[], nameOf: (row: number) => string): Group[] {
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const name = nameOf(row);
    const group = groups.get(name);
    if (group) group.push(row);
    else groups.set(name, [row]);
  }
  return [...groups].map(([name, all]) => ({ name, rows: all })).sort((a, b) => a.name.localeCompare(b.name));
}

function countsOf(rows: readonly number[]): { word: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(applications.columns.health[row]!, (counts.get(applications.columns.health[row]!) ?? 0) + 1);
  return [...counts].map(([word, count]) => ({ word, count })).sort((a, b) => state(b.word).severity - state(a.word).severity);
}

/** The table that says what the picture shows. */
function Twin({ groups, by }: { groups: readonly Group[]; by: string }) {
  const words = countsOf(groups.flatMap((group) => group.rows)).map(({ word }) => word);
  return (
    <div class="sr">
      <table>
        <caption>Applications by {by} and health</caption>
        <thead><tr><th scope="col">{by}</th>{words.map((word) => <th key={word} scope="col">{word}</th>)}</tr></thead>
        <tbody>
          {groups.map((group) => {
            const counts = new Map(countsOf(group.rows).map(({ word, count }) => [word, count]));
            return <tr key={group.name}><th scope="row">{group.name}</th>{words.map((word) => <td key={word}>{counts.get(word) ?? 0}</td>)}</tr>;
          })}
        </tbody>
      </table>
    </div>
  );
}

/** What the tile under the pointer, or else the active one, stands for. */
function Line({ row }: { row: number | undefined }) {
  if (row === undefined) return <p class="tile-line mute small">Arrows or the pointer name an application, Enter opens it.</p>;
  const value = applications.at(row);
  return <p class="tile-line"><span class="name clip">{value.name}</span><span class="mute clip">{value.runtime} / {value.namespace}</span><Status value={value.health} /><Status value={value.sync} /><span class="mute"><Age at={value.changedAt} ago /></span><AsOf at={value.seenAt} runtime={value.runtime} /></p>;
}

function useSize(element: { current: HTMLElement | null }): { width: number; height: number } {
  const [size, set] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const read = () => set({ width: element.current!.clientWidth, height: element.current!.clientHeight });
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return size;
}

const PAD = 16;

/** What is on the canvas. */
interface Drawn {
  picture: readonly unknown[]; // what the places and colours depend on
  paint: CanvasRenderingContext2D;
  scale: number;
  colours: Colours;
  sprites: Map<string, HTMLCanvasElement>;
  words: string[]; // by tile
  titles: string[]; // by group
}

function newPicture(canvas: HTMLCanvasElement, probe: HTMLElement, width: number, layout: TileLayout, picture: readonly unknown[]): Drawn {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(layout.height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${layout.height}px`;
  const paint = canvas.getContext('2d')!;
  paint.scale(scale, scale);
  paint.font = '600 12px system-ui, sans-serif';
  paint.textBaseline = 'middle';
  return { picture, paint, scale, colours: coloursAt(probe), sprites: new Map(), words: [], titles: [] };
}

function drawTitle({ paint, colours, titles }: Drawn, number: number, { name, top, count }: TileGroup, rows: readonly number[], width: number, silentSince: number | undefined): void {
  const trouble = countsOf(rows).filter(({ word }) => state(word).severity > 0).map(({ word, count: some }) => `${some} ${word}`).join(', ');
  const title = `${name || 'not known'} · ${count}${trouble && ` · ${trouble}`}${silentSince ? ` · runtime silent since ${minute(silentSince)}` : ''}`;
  if (titles[number] === title) return;
  titles[number] = title;
  paint.clearRect(0, top, width, TITLE);
  paint.fillStyle = colours[silentSince ? 'warn' : 'mute'];
  paint.fillText(title, PAD, top + TITLE / 2, width - 2 * PAD);
}

/** Draws what differs from what is there. */
function drawTiles(drawn: Drawn, layout: TileLayout, groups: readonly Group[], order: readonly number[], chosen: ReadonlySet<number>, width: number, by: string): void {
  const { paint, words, sprites, scale, colours } = drawn;
  const size = Math.max(2, layout.pitch - (layout.pitch > 8 ? 2 : 1));
  const { health, runtime } = applications.columns;
  for (const [number, group] of layout.groups.entries()) {
    drawTitle(drawn, number, group, groups[number]!.rows, width, by === 'runtime' ? offline.peek().get(group.name) : undefined);
    for (let inside = 0; inside < group.count; ++inside) {
      const tile = group.from + inside;
      const row = order[tile]!;
      const isFaint = applications.isGone(row) || offline.peek().has(runtime[row]!);
      const word = isFaint ? `${health[row]!} faint` : health[row]!;
      if (words[tile] === word) continue;
      words[tile] = word;
      let picture = sprites.get(health[row]!);
      if (!picture) sprites.set(health[row]!, (picture = sprite(health[row]!, size, scale, colours)));
      const x = (inside % layout.perLine) * layout.pitch + PAD;
      const y = group.top + TITLE + Math.floor(inside / layout.perLine) * layout.pitch;
      paint.clearRect(x, y, size, size);
      paint.globalAlpha = isFaint ? 0.45 : 1;
      paint.drawImage(picture, x, y, size, size);
      paint.globalAlpha = 1;
      if (!chosen.has(row)) continue;
      paint.strokeStyle = colours.run;
      paint.lineWidth = 2;
      paint.strokeRect(x + 1, y + 1, size - 2, size - 2);
    }
  }
}

export function Tiles({ rows, open, cursor, chosen, choose, by }: ListProps & { by: 'runtime' | 'cluster' }) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const [hovered, setHovered] = useState(-1);
  const [active, setActive] = useState(cursor.at);
  const [scheme, setScheme] = useState(0);
  const { width, height } = useSize(scroller);
  const groups = useMemo(() => grouped(rows, (row) => (by === 'cluster' ? clusterName(applications.columns.cluster[row]!) : applications.columns.runtime[row]!)), [rows, by]);
  const order = useMemo(() => groups.flatMap((group) => group.rows), [groups]);
  const layout = useMemo(() => tileLayout(groups.map((group) => group.name), groups.map((group) => group.rows.length), Math.max(1, width - 2 * PAD), Math.max(1, height - 8)), [groups, width, height]);
  const at = Math.max(0, Math.min(active, order.length - 1));
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const change = () => setScheme((one) => one + 1);
    dark.addEventListener('change', change);
    return () => dark.removeEventListener('change', change);
  }, []);
  const drawn = useRef<Drawn | null>(null);
  // Everything is drawn again when the picture is another one, else the tiles that changed.
  const picture = [layout, order, chosen, width, by, scheme, theme.value, offline.value];
  useLayoutEffect(() => {
    if (width === 0) return;
    const old = drawn.current;
    const isSame = old !== null && picture.every((part, index) => part === old.picture[index]);
    const now = isSame ? old : newPicture(canvas.current!, probe.current!, width, layout, picture);
    drawn.current = now;
    drawTiles(now, layout, groups, order, chosen, width, by);
  }, [...picture, pulse.value]);
  const move = (to: number) => {
    if (order[to] === undefined) return;
    setActive(to);
    setHovered(-1);
    cursor.at = to;
    const { y } = cornerOf(layout, to);
    const element = scroller.current!;
    if (y - TITLE < element.scrollTop) element.scrollTop = y - TITLE;
    else if (y + layout.pitch > element.scrollTop + element.clientHeight) element.scrollTop = y + layout.pitch - element.clientHeight;
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const steps: Record<string, () => void> = {
      ArrowRight: () => move(at + 1), ArrowLeft: () => move(at - 1), ArrowDown: () => move(tileBeside(layout, at, 1)), ArrowUp: () => move(tileBeside(layout, at, -1)),
      j: () => move(at + 1), k: () => move(at - 1), Home: () => move(0), End: () => move(order.length - 1),
      Enter: () => { if (order[at] !== undefined) open(order[at]!); }, x: () => choose(order, at, false), X: () => choose(order, at, true), ' ': () => choose(order, at, false),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };
  const under = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return tileAt(layout, event.clientX - box.left - PAD, event.clientY - box.top);
  };
  const point = (event: MouseEvent) => {
    const tile = under(event);
    if (tile < 0) return;
    move(tile);
    if (event.shiftKey || event.ctrlKey || event.metaKey) choose(order, tile, event.shiftKey);
    else open(order[tile]!);
  };
  const corner = order.length > 0 ? cornerOf(layout, at) : { x: 0, y: 0 };
  const mark = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { style } = mark.current!;
    style.transform = `translate(${corner.x + PAD - 2}px, ${corner.y - 2}px)`;
    style.width = style.height = `${layout.pitch + 2}px`;
  }, [corner.x, corner.y, layout.pitch]);
  const activeRow = order[at];
  return (
    <>
      <Line row={order[hovered >= 0 ? hovered : at]} />
      <Twin groups={groups} by={by} />
      <span ref={probe} class="sr" aria-hidden="true" />
      <div ref={scroller} class="grid tiles" data-scroller data-list role="listbox" tabIndex={0} aria-label="Applications" aria-multiselectable="true" aria-activedescendant={activeRow === undefined ? undefined : 'tile-active'}
        onKeyDown={key} onClick={point} onMouseMove={(event) => setHovered(under(event))} onMouseLeave={() => setHovered(-1)}>
        <canvas ref={canvas} aria-hidden="true" />
        <div ref={mark} class="tile-mark" aria-hidden="true" />
        {activeRow !== undefined && (
          <div id="tile-active" class="sr" role="option" aria-selected={chosen.has(activeRow)} aria-posinset={at + 1} aria-setsize={order.length}>
            {applications.columns.name[activeRow]}, {applications.columns.runtime[activeRow]}, {applications.columns.health[activeRow]}, {applications.columns.sync[activeRow]}
          </div>
        )}
      </div>
    </>
  );
}
