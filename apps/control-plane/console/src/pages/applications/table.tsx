import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { rememberedScroll } from '../../shell/router';
import type { Sort } from '../../store/applications';
import { applications, offline } from '../../store/state';
import { AsOf } from '../../ui/as_of';
import { Icon } from '../../ui/icons';
import { Status } from '../../ui/status';
import { Age } from '../../ui/time';
import { scrollFor, useWindow } from '../../ui/virtual';
import { leastWidth, type Column } from './columns';
import { useRow, type ListProps } from './use_row';
import { stillMatches } from './view';

const HEAD = 32;
const phone = matchMedia('(max-width: 899px)');

function useIsPhone(): boolean {
  const [is, set] = useState(phone.matches);
  useEffect(() => {
    const change = () => set(phone.matches);
    phone.addEventListener('change', change);
    return () => phone.removeEventListener('change', change);
  }, []);
  return is;
}

interface RowProps {
  row: number;
  index: number;
  height: number;
  columns: readonly Column[];
  active: boolean;
  chosen: boolean;
  isPhone: boolean;
  point: (index: number, event: MouseEvent) => void;
}

/** A row listens to its own cells; a changed one is marked. */
function Row({ row, index, height, columns, active, chosen, isPhone, point }: RowProps) {
  const element = useRef<HTMLDivElement>(null);
  const marks = useRow(row);
  // The policy of the page allows positions by the object model, not as an attribute.
  useLayoutEffect(() => {
    element.current!.style.transform = `translateY(${HEAD + index * height}px)`;
  }, [index, height]);
  const value = applications.at(row);
  const isGone = applications.isGone(row);
  const isSilent = offline.value.has(value.runtime);
  const name = ['row', active && 'active', chosen && 'chosen', (isGone || !stillMatches(row)) && 'dim', isSilent && 'silent'].filter(Boolean).join(' ');
  return (
    <div ref={element} id={`row-${row}`} class={name} role="row" aria-rowindex={index + 2} aria-selected={chosen} onClick={(event) => point(index, event)}>
      {isPhone ? (
        <div role="gridcell" class="two-lines">
          <span class="clip name">{value.name}</span>
          <span class="states small"><Status value={value.health} /><Status value={value.sync} />{isSilent ? <AsOf at={value.seenAt} runtime={value.runtime} /> : <span class="mute clip">{value.runtime}</span>}<span class="mute end"><Age at={value.changedAt} /></span></span>
        </div>
      ) : columns.map((column) => (
        <div key={column.key} role="gridcell" class={marks.has(column.key) ? 'cell changed' : 'cell'}>
          {isGone && column.key === 'health' ? <span class="state mute"><Icon name="bar" />gone</span> : column.cell(value)}
          {isSilent && column.key === 'name' && <AsOf at={value.seenAt} runtime={value.runtime} />}
        </div>
      ))}
    </div>
  );
}

interface TableProps extends ListProps {
  columns: readonly Column[];
  sort: Sort;
  setSort: (sort: Sort) => void;
  name: string; // of the view: another one begins at the top
}

/** The scrolling element itself is the grid, with the head inside. Focus stays on it; the active row is named. */
export function Table({ rows, columns, sort, setSort, open, name, cursor, chosen, choose }: TableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const space = useRef<HTMLDivElement>(null);
  const isPhone = useIsPhone();
  const height = isPhone ? 56 : 36;
  const [first, end, top] = useWindow(scroller, height, rows.length);
  const [active, setActive] = useState(cursor.at);
  const at = Math.min(active, rows.length - 1);

  useLayoutEffect(() => {
    space.current!.style.height = `${HEAD + rows.length * height}px`;
  }, [rows.length, height]);
  const shown = useRef('');
  useLayoutEffect(() => {
    const wanted = shown.current === '' ? rememberedScroll() : 0;
    if (top !== wanted) scroller.current!.scrollTop = wanted;
    if (shown.current !== '') setActive(0);
    shown.current = name;
  }, [name]);
  useLayoutEffect(() => {
    scroller.current!.style.setProperty('--tracks', columns.map((column) => column.width).join(' '));
    scroller.current!.style.setProperty('--least', `${leastWidth(columns)}px`);
  }, [columns]);
  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setActive(next);
    cursor.at = next;
    const element = scroller.current!;
    const target = scrollFor(next, element.scrollTop, element.clientHeight, height, HEAD);
    if (target !== null) element.scrollTop = target;
  };
  const page = () => Math.max(1, Math.floor((scroller.current!.clientHeight - HEAD) / height) - 1);
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== scroller.current) return;
    const steps: Record<string, () => void> = {
      ArrowDown: () => move(at + 1), j: () => move(at + 1), ArrowUp: () => move(at - 1), k: () => move(at - 1),
      PageDown: () => move(at + page()), PageUp: () => move(at - page()), Home: () => move(0), End: () => move(rows.length - 1),
      Enter: () => { if (rows[at] !== undefined) open(rows[at]!); },
      x: () => choose(rows, at, false), X: () => choose(rows, at, true), ' ': () => choose(rows, at, false),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };
  const act = useRef((_index: number, _event: MouseEvent) => {});
  act.current = (index, event) => {
    // A link opens by itself, in a new tab if the browser is told so.
    if ((event.target as Element).closest('a')) return void move(index);
    move(index);
    scroller.current!.focus({ preventScroll: true });
    if (event.shiftKey || event.ctrlKey || event.metaKey) choose(rows, index, event.shiftKey);
    else open(rows[index]!);
  };
  // Rows get the same function each time, so that those that stay as they are are not drawn again.
  const point = useCallback((index: number, event: MouseEvent) => act.current(index, event), []);
  return (
    <div ref={scroller} class="grid" data-scroller data-list role="grid" tabIndex={0} aria-label="Applications" aria-rowcount={rows.length + 1} aria-multiselectable="true"
      aria-activedescendant={rows[at] !== undefined && at >= first && at < end ? `row-${rows[at]}` : undefined} onKeyDown={key}>
      <div class="head" role="row" aria-rowindex={1}>
        {isPhone ? <div role="columnheader" class="cell">Application</div> : columns.map((column) => (
          <div key={column.key} role="columnheader" class="cell" aria-sort={sort.key === column.key ? (sort.down ? 'descending' : 'ascending') : 'none'}>
            <button type="button" onClick={() => setSort({ key: column.key, down: sort.key === column.key && !sort.down })}>
              {column.title}{sort.key === column.key && <Icon name={sort.down ? 'down' : 'up'} size={12} />}
            </button>
          </div>
        ))}
      </div>
      <div ref={space} class="space" role="presentation" />
      {rows.slice(first, end).map((row, offset) => (
        <Row key={row} row={row} index={first + offset} height={height} columns={columns} active={first + offset === at} chosen={chosen.has(row)} isPhone={isPhone} point={point} />
      ))}
    </div>
  );
}
