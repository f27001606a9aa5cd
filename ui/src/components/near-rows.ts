// Which rows of a long table are laid out first: those near the screen. The others follow once these are drawn, so that sorting or
// extending hundreds of rows takes no longer to be seen, and searching in the page, copying and printing reach every row. Rows that
// are loaded again in place stay laid out: one of them may have the focus or be selected.

import type { RefObject } from "preact";
import { useEffect, useReducer, useRef } from "preact/hooks";

/** Shorter tables are laid out at once. */
const LONG = 60;
/** Rows above and below the screen. */
const MARGIN = 2;
/** Of a row, in pixels, until it is measured. */
const ROW_HEIGHT = 40;

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
    from: clamp(Math.floor(top / height) - MARGIN),
    to: clamp(Math.ceil(bottom / height) + MARGIN),
    height,
  };
}

/** Columns do not become narrower while fewer rows are laid out. */
function keepWidths(headings: readonly HTMLTableCellElement[]): void {
  const widths = headings.map((heading) => heading.offsetWidth);
  for (const [column, heading] of headings.entries()) heading.style.minWidth = `${widths[column]}px`;
}

function freeWidths(headings: readonly HTMLTableCellElement[]): void {
  for (const heading of headings) heading.style.minWidth = "";
}

function headingsOf(table: HTMLTableElement): HTMLTableCellElement[] {
  return [...(table.tHead?.querySelectorAll("th") ?? [])];
}

/** Before other rows are there. */
function measure(table: HTMLTableElement | null, count: number): NearRows {
  const body = table?.tBodies[0];
  if (!table || !body || body.rows.length === 0) return nearRows(0, innerHeight, count, ROW_HEIGHT);
  keepWidths(headingsOf(table));
  const { top, height } = body.getBoundingClientRect();
  return nearRows(-top, innerHeight - top, count, height / body.rows.length || ROW_HEIGHT);
}

/** Of a list that is loaded again, at most so many rows are new. */
const MAX_NEW = 10;

/** Whether a list was loaded again, and not extended. */
export function isLoadedAgain(before: readonly string[], now: readonly string[]): boolean {
  const known = new Set(before);
  return now.filter((key) => !known.has(key)).length <= MAX_NEW;
}

/** `address` is that of the page: another one shows another list or order. Null if all rows are laid out. */
export function useNearRows<Row>(
  table: RefObject<HTMLTableElement | null>,
  rows: readonly Row[],
  rowKey: (row: Row) => string,
  address: string,
): NearRows | null {
  const laidOut = useRef<{ rows: readonly Row[]; address: string }>({ rows: [], address });
  const [, render] = useReducer((count: number) => count + 1, 0);
  const before = laidOut.current;
  const isOther = before.rows !== rows;
  const isFirst =
    rows.length > LONG &&
    isOther &&
    !(before.address === address && isLoadedAgain(before.rows.map(rowKey), rows.map(rowKey)));
  if (isOther && !isFirst) laidOut.current = { rows, address };
  useEffect(() => {
    if (!isFirst) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const frame = requestAnimationFrame(() => {
      timer = setTimeout(() => {
        laidOut.current = { rows, address };
        render(undefined);
        if (table.current) freeWidths(headingsOf(table.current));
      });
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, [isFirst, rows]);
  return isFirst ? measure(table.current, rows.length) : null;
}
