// Which rows of a long table are laid out: those near the screen. The browser lays out a whole table at once, so that sorting or
// extending hundreds of rows takes it long.

import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Shorter tables are laid out as a whole. */
const LONG = 60;
/** Rows above and below the screen, and by how many the range moves. */
const MARGIN = 5;
/** Of a row, in pixels, until it is measured. */
const ROW_HEIGHT = 50;

export interface NearRows {
  from: number;
  to: number;
  /** Of one row, in pixels. */
  height: number;
}

/** `top` and `bottom` of the screen, in pixels from the top of the rows. */
export function nearRows(top: number, bottom: number, count: number, height: number): NearRows {
  const clamp = (row: number) => Math.max(0, Math.min(count, row));
  return {
    from: clamp((Math.floor(top / height / MARGIN) - 1) * MARGIN),
    to: clamp((Math.ceil(bottom / height / MARGIN) + 1) * MARGIN),
    height,
  };
}

/** Columns do not become narrower while other rows are laid out. */
function keepWidths(headings: readonly HTMLTableCellElement[]): void {
  const widths = headings.map((heading) => heading.offsetWidth);
  for (const [column, heading] of headings.entries()) heading.style.minWidth = `${widths[column]}px`;
}

function freeWidths(headings: readonly HTMLTableCellElement[]): void {
  for (const heading of headings) heading.style.minWidth = "";
}

/** Null if all rows are to be laid out. */
export function useNearRows(table: RefObject<HTMLTableElement | null>, count: number): NearRows | null {
  const isLong = count > LONG;
  const [near, setNear] = useState<NearRows>({ from: 0, to: 4 * MARGIN, height: ROW_HEIGHT });
  useEffect(() => {
    const element = table.current;
    const rows = element?.tBodies[0];
    if (!isLong || !element || !rows) return;
    const headings = [...element.querySelectorAll("th")];
    let frame = 0;
    const measure = () => {
      frame = 0;
      const { top, height } = rows.getBoundingClientRect();
      const next = nearRows(-top, innerHeight - top, count, height / count);
      keepWidths(headings);
      setNear((near) => (near.from === next.from && near.to === next.to ? near : next));
    };
    const measureLater = () => {
      frame ||= requestAnimationFrame(measure);
    };
    measureLater();
    addEventListener("scroll", measureLater, { passive: true });
    const onResize = () => {
      freeWidths(headings);
      measureLater();
    };
    addEventListener("resize", onResize);
    return () => {
      cancelAnimationFrame(frame);
      freeWidths(headings);
      removeEventListener("scroll", measureLater);
      removeEventListener("resize", onResize);
    };
  }, [isLong, count]);
  return isLong ? { ...near, to: Math.min(near.to, count) } : null;
}
