// A table: columns that sort by the address, and a CSV of what it shows.

import { Component, type ComponentChildren, type RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { type CsvColumn, formatCsv, saveFile } from "../csv.ts";
import { formatView, navigate, view } from "../state/view.ts";
import { useShownRows } from "./near-rows.ts";
import * as css from "./table.module.css";

export interface Column<Row> extends CsvColumn<Row> {
  /** Columns without it are in the CSV only. */
  render?: (row: Row) => ComponentChildren;
  /** What stands above the column instead of its name. */
  heading?: ComponentChildren;
  isNumber?: boolean;
  /** Whether it names what a row is of: it has the room that the others leave, and stays while a table scrolls sideways. */
  isName?: boolean;
  /** Whether it has controls, which are not on paper and have no name above them. */
  isControl?: boolean;
  /** The value of `sort` in the address that sorts by this column; descending with `-` before it. */
  sort?: string;
}

interface Props<Row> {
  title: string;
  /** The same array as before as long as the columns are the same. */
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  /** The sort in effect if the address names none. */
  sort?: string;
  /** For many columns: narrow ones, with headings of two lines. */
  isDense?: boolean;
}

export function Table<Row>({ title, columns: all, rows, rowKey, sort = "", isDense = false }: Props<Row>) {
  const columns = all.filter(({ render }) => render);
  const current = view.value.sort || sort;
  const frame = useRef<HTMLDivElement>(null);
  const table = useRef<HTMLTableElement>(null);
  useStickyHead(frame, table);
  const shown = useShownRows(table, rows, rowKey, formatView(view.value));
  return (
    <div ref={frame} class={css.tableFrame} tabIndex={0} role="region" aria-label={`${title}: table`}>
      <table ref={table} class={isDense ? css.dense : ""}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.name} column={column} current={current} />
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(({ element, row }) => (
            <Cells key={element} row={row} columns={all} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The head stays on screen while the page scrolls, unless the table scrolls sideways in its frame. */
function useStickyHead(frame: RefObject<HTMLElement | null>, table: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    if (!frame.current || !table.current || typeof ResizeObserver === "undefined") return;
    const [outer, inner] = [frame.current, table.current];
    const observer = new ResizeObserver(() =>
      outer.toggleAttribute("data-fits", inner.offsetWidth <= outer.clientWidth),
    );
    observer.observe(outer);
    observer.observe(inner);
    return () => observer.disconnect();
  }, []);
}

function cellClass<Row>({ isNumber, isName, isControl }: Column<Row>): string {
  return isNumber ? "number" : isName ? css.name : isControl ? css.control : "";
}

/** A row, rendered again only for another record or other columns. */
class Cells<Data> extends Component<{ row: Data; columns: readonly Column<Data>[] }> {
  override shouldComponentUpdate(next: Readonly<{ row: Data; columns: readonly Column<Data>[] }>): boolean {
    return next.row !== this.props.row || next.columns !== this.props.columns;
  }

  override render() {
    const { row, columns } = this.props;
    return (
      <tr>
        {columns.map(
          (column) =>
            column.render && (
              <td key={column.name} class={cellClass(column)}>
                {column.render(row)}
              </td>
            ),
        )}
      </tr>
    );
  }
}

function Heading<Row>({ column, current }: { column: Column<Row>; current: string }) {
  const { name, heading = name, sort, isControl } = column;
  const direction = current === sort ? "ascending" : current === `-${sort}` ? "descending" : null;
  return (
    <th
      scope="col"
      class={`${cellClass(column)}${sort ? "" : ` ${css.unsorted}`}`}
      {...(sort && direction ? { "aria-sort": direction } : {})}
    >
      {sort ? (
        <button type="button" onClick={() => sortBy(direction === "descending" ? sort : `-${sort}`)}>
          {name}
          <Arrow direction={direction} />
        </button>
      ) : isControl && heading === name ? (
        <span class="hidden-text">{name}</span>
      ) : (
        heading
      )}
    </th>
  );
}

/** Takes the same room whether it is shown or not. */
function Arrow({ direction }: { direction: "ascending" | "descending" | null }) {
  return (
    <span class={css.arrow} aria-hidden="true">
      {direction === "ascending" ? "↑" : direction === "descending" ? "↓" : ""}
    </span>
  );
}

function sortBy(sort: string): void {
  navigate({ sort });
}

/** Saves the rows of a table as a file. */
export function CsvButton<Row>({ title, columns, rows }: Pick<Props<Row>, "title" | "columns" | "rows">) {
  return (
    <button
      type="button"
      class="plain small"
      title="Save the rows that are shown"
      onClick={() => saveFile(title, new Blob([formatCsv(columns, rows)], { type: "text/csv" }))}
      disabled={rows.length === 0}
    >
      Save as CSV
    </button>
  );
}
