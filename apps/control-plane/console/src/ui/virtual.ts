// Rows of fixed height: only those in sight are drawn, and eight more on both sides.
import { useEffect, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

const OVERSCAN = 8;

/** Returns the first row to draw and the one behind the last. */
export function windowOf(top: number, height: number, rowHeight: number, count: number): [number, number] {
  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
  return [Math.min(first, count), Math.min(count, Math.ceil((top + height) / rowHeight) + OVERSCAN)];
}

/** Follows the scroll position and the height of an element. Returns the window, and the position: to ask the element itself
 * makes it lay itself out. */
export function useWindow(scroller: RefObject<HTMLElement | null>, rowHeight: number, count: number): [number, number, number] {
  const [sight, setSight] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const read = () => setSight((old) => {
      const next = { top: element.scrollTop, height: element.clientHeight };
      return old.top === next.top && old.height === next.height ? old : next;
    });
    read();
    element.addEventListener('scroll', read, { passive: true });
    const observer = new ResizeObserver(read);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', read);
      observer.disconnect();
    };
  }, []);
  return [...windowOf(sight.top, sight.height, rowHeight, count), sight.top];
}

/** Returns where to scroll so that a row is in sight, or null when it is. `head` covers the top. */
export function scrollFor(row: number, top: number, height: number, rowHeight: number, head: number): number | null {
  const y = row * rowHeight;
  if (y < top) return y;
  if (y + rowHeight > top + height - head) return y + rowHeight - height + head;
  return null;
}
