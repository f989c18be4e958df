// The list as a board: a column for each health, the worst first.
import { useMemo, useRef, useState } from 'preact/hooks';

import { applications } from '../../store/state';
import { state } from '../../store/states';
import { AsOf } from '../../ui/as_of';
import { Icon } from '../../ui/icons';
import { Revision } from '../../ui/parts';
import { Status } from '../../ui/status';
import { Age } from '../../ui/time';
import { applicationPath } from './columns';
import { useRow, type ListProps } from './use_row';
import { stillMatches } from './view';

export const MOST_CARDS = 200;

/** Puts rows into columns by a word of theirs, the most severe first; their order within stays. */
export function board(rows: readonly number[], wordOf: (row: number) => string): { word: string; rows: number[] }[] {
  const columns = new Map<string, number[]>();
  for (const row of rows) {
    const word = wordOf(row);
    const column = columns.get(word);
    if (column) column.push(row);
    else columns.set(word, [row]);
  }
  return [...columns].map(([word, all]) => ({ word, rows: all })).sort((a, b) => state(b.word).severity - state(a.word).severity);
}

interface CardProps {
  row: number;
  isActive: boolean;
  isChosen: boolean;
  column: string;
  point: (event: MouseEvent) => void;
}

function Card({ row, isActive, isChosen, column, point }: CardProps) {
  const marks = useRow(row);
  const value = applications.at(row);
  const isGone = applications.isGone(row);
  const name = ['card', isChosen && 'chosen', (isGone || !stillMatches(row)) && 'dim', marks.size > 0 && 'changed'].filter(Boolean).join(' ');
  return (
    <a id={`card-${row}`} class={name} href={applicationPath(value)} tabIndex={isActive ? 0 : -1} data-list={isActive ? '' : undefined} onClick={point}>
      <span class="clip name">{value.name}</span>
      <span class="clip small mute">{value.runtime} / {value.namespace}</span>
      <span class="states small">
        {isGone ? <span class="state mute"><Icon name="bar" />gone</span> : value.health !== column && <Status value={value.health} />}
        <Status value={value.sync} />
        {value.phase && value.phase !== 'Succeeded' && <Status value={value.phase} />}
      </span>
      <span class="small mute card-end"><Revision value={value.revision} /><span class="clip grow">{value.author}</span><Age at={value.changedAt} /></span>
      <AsOf at={value.seenAt} runtime={value.runtime} />
      {isChosen && <span class="sr">chosen</span>}
    </a>
  );
}

export function Cards({ rows, open, cursor, chosen, choose }: ListProps) {
  const shown = rows.slice(0, MOST_CARDS);
  // By the health at the time of the order: a card that changes stays where it is.
  const columns = useMemo(() => board(shown, (row) => applications.columns.health[row]!), [rows]);
  const order = columns.flatMap((column) => column.rows);
  const [active, setActive] = useState(cursor.at);
  const at = Math.min(active, order.length - 1);
  const scroller = useRef<HTMLDivElement>(null);
  const move = (to: number) => {
    if (order[to] === undefined) return;
    setActive(to);
    cursor.at = to;
    document.getElementById(`card-${order[to]}`)?.focus();
  };
  const side = (by: 1 | -1) => {
    const column = columns.findIndex((one) => one.rows.includes(order[at]!));
    const next = columns[column + by];
    if (next) move(order.indexOf(next.rows[Math.min(columns[column]!.rows.indexOf(order[at]!), next.rows.length - 1)]!));
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const steps: Record<string, () => void> = {
      ArrowDown: () => move(at + 1), j: () => move(at + 1), ArrowUp: () => move(at - 1), k: () => move(at - 1),
      ArrowLeft: () => side(-1), ArrowRight: () => side(1), Home: () => move(0), End: () => move(order.length - 1),
      x: () => choose(order, at, false), X: () => choose(order, at, true),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };
  const point = (index: number, event: MouseEvent) => {
    setActive(index);
    cursor.at = index;
    if (event.button !== 0 || event.metaKey || event.ctrlKey) return; // the browser's own
    event.preventDefault();
    if (event.shiftKey) choose(order, index, true);
    else open(order[index]!);
  };
  let index = 0;
  return (
    <div ref={scroller} class="grid board" data-scroller role="group" aria-label="Applications by health" onKeyDown={key}>
      {columns.map((column) => (
        <section key={column.word} aria-label={`${column.word}: ${column.rows.length}`}>
          <h2><Status value={column.word} /><span class="mute">{column.rows.length}</span></h2>
          {column.rows.map((row) => {
            const mine = index++;
            return <Card key={row} row={row} column={column.word} isActive={mine === at} isChosen={chosen.has(row)} point={(event) => point(mine, event)} />;
          })}
        </section>
      ))}
      {rows.length > MOST_CARDS && <p class="mute small board-end">The first {MOST_CARDS} of {rows.length}. Filter them, or look at all as tiles (<kbd>v</kbd>).</p>}
    </div>
  );
}
