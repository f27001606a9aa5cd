// Which rows of a long table change first: those near the screen. The others follow once these are drawn, so that sorting hundreds of
// rows takes no longer to be seen, and searching in the page, copying and printing reach every row. The elements of a long table
// stay where they are and show another record, which costs a quarter of moving them. Of a list that is loaded again in place, each
// keeps its record: it may have the focus or be selected.

import type { RefObject } from "preact";
import { useEffect, useReducer, useRef } from "preact/hooks";

/** Shorter tables change at once. */
const LONG = 60;
/** Rows above and below the screen. */
const MARGIN = 2;

/** The rows from one position to another, which is not among them. */
export interface NearRows {
  from: number;
  to: number;
}

/** `top` and `bottom` of the screen and the height of a row, in pixels from the top of the rows. */
export function nearRows(top: number, bottom: number, count: number, height: number): NearRows {
  const clamp = (row: number) => Math.max(0, Math.min(count, row));
  return {
    from: clamp(Math.floor(top / height) - MARGIN),
    to: clamp(Math.ceil(bottom / height) + MARGIN),
  };
}

function headingsOf(table: HTMLTableElement | null): HTMLTableCellElement[] {
  return [...(table?.tHead?.querySelectorAll("th") ?? [])];
}

/** Columns do not become narrower while some rows show others than they will. */
function keepWidths(headings: readonly HTMLTableCellElement[]): void {
  const widths = headings.map((heading) => heading.getBoundingClientRect().width);
  for (const [column, heading] of headings.entries()) heading.style.minWidth = `${widths[column]}px`;
}

function freeWidths(headings: readonly HTMLTableCellElement[]): void {
  for (const heading of headings) heading.style.minWidth = "";
}

/** Before other rows are there. */
function measure(table: HTMLTableElement | null, count: number): NearRows {
  const body = table?.tBodies[0];
  if (!body) return { from: 0, to: count };
  // Before the widths are set, which the browser would lay out at once.
  const { top, height } = body.getBoundingClientRect();
  keepWidths(headingsOf(table));
  return nearRows(-top, innerHeight - top, count, height / body.rows.length);
}

/** Of a list that is loaded again, at most so many rows are new. */
const MAX_NEW = 10;

/** Whether a list was loaded again, and not extended. */
export function isLoadedAgain(before: readonly string[], now: readonly string[]): boolean {
  const known = new Set(before);
  return now.filter((key) => !known.has(key)).length <= MAX_NEW;
}

interface Elements {
  /** Of the records, in the order of their elements. */
  keys: readonly string[];
  /** Of the elements. */
  numbers: readonly number[];
  /** Greater than all numbers so far. */
  next: number;
}

/** The numbers of the elements that show other records: those of the same records, or else those at the same positions. */
export function elementsOf(before: Elements, keys: readonly string[], isByRecord: boolean): Elements {
  const known = new Map(before.keys.map((key, position) => [key, before.numbers[position]]));
  const numbers = keys.map(
    (key, position) => (isByRecord ? known.get(key) : before.numbers[position]) ?? before.next + position,
  );
  return { keys, numbers, next: before.next + keys.length };
}

export interface ShownRow<Row> {
  /** The number of its element. */
  element: number;
  row: Row;
}

/**
 * What a table shows until all rows are there: at first all, since a page returns to where it was scrolled. `address` is that of the
 * page: another one shows another list or order.
 */
export function useShownRows<Row>(
  table: RefObject<HTMLTableElement | null>,
  rows: readonly Row[],
  rowKey: (row: Row) => string,
  address: string,
): ShownRow<Row>[] {
  const shown = useRef({ rows: [] as readonly Row[], address, elements: elementsOf(NO_ELEMENTS, [], true) });
  const [, render] = useReducer((count: number) => count + 1, 0);
  const before = shown.current;
  const isOther = before.rows !== rows;
  const keys = isOther ? rows.map(rowKey) : before.elements.keys;
  const isPart =
    isOther &&
    rows.length > LONG &&
    before.rows.length > 0 &&
    !(before.address === address && isLoadedAgain(before.elements.keys, keys));
  const elements = isOther ? elementsOf(before.elements, keys, !isPart) : before.elements;
  const showAll = () => {
    shown.current = { rows, address, elements };
  };
  if (isOther && !isPart) showAll();
  useEffect(() => {
    if (!isPart) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const frame = requestAnimationFrame(() => {
      timer = setTimeout(() => {
        showAll();
        freeWidths(headingsOf(table.current));
        render(undefined);
      });
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, [isPart, rows]);
  const { from, to } = isPart ? measure(table.current, rows.length) : { from: 0, to: rows.length };
  return rows.flatMap((after, position) => {
    const row = position >= from && position < to ? after : before.rows[position];
    return row === undefined ? [] : [{ element: elements.numbers[position] ?? 0, row }];
  });
}

const NO_ELEMENTS: Elements = { keys: [], numbers: [], next: 0 };
