import { useEffect, useRef, useState } from 'preact/hooks';

import { applications } from '../../store/state';

/** Draws the component again when the row changes. Returns the keys that changed within the last second. */
export function useRow(row: number): ReadonlySet<string> {
  const [, draw] = useState(0);
  const marks = useRef<ReadonlySet<string>>(new Set());
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = applications.listen(row, (changed) => {
      marks.current = new Set(changed);
      draw((one) => one + 1);
      clearTimeout(timer);
      timer = setTimeout(() => {
        marks.current = new Set();
        draw((one) => one + 1);
      }, 1_000);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [row]);
  return marks.current;
}

/** What the forms of the list share. */
export interface ListProps {
  rows: readonly number[];
  open: (row: number) => void;
  cursor: { at: number };
  chosen: ReadonlySet<number>;
  /** Chooses the row at an index of `order`, or with `range` all from the one that was chosen last. */
  choose: (order: readonly number[], index: number, range: boolean) => void;
}
