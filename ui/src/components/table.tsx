// A table: columns that sort by the address, and a CSV of what it shows.

import { Component, type ComponentChildren, type RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { type CsvColumn, formatCsv, saveFile } from "../csv.ts";
import { formatView, navigate, view } from "../state/view.ts";
import { useNearRows } from "./near-rows.ts";
import * as css from "./table.module.css";

export interface Column<Row> extends CsvColumn<Row> {
  /** Columns without it are in the CSV only. */
  render?: (row: Row) => ComponentChildren;
  /** What stands above the column instead of its name. */
  heading?: ComponentChildren;
  isNumber?: boolean;
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
  const near = useNearRows(table, rows, rowKey, formatView(view.value));
  const isNear = (position: number) => !near || (position >= near.from && position < near.to);
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
          {/* One array: a row that is moved within it is not made again. */}
          {[
            near && <Gap key="above" height={near.from * near.height} />,
            ...rows.map((row, position) => (
              <tr key={rowKey(row)} hidden={!isNear(position)}>
                <Cells row={row} columns={all} />
              </tr>
            )),
            near && <Gap key="below" height={(rows.length - near.to) * near.height} />,
          ]}
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

/** As high as the rows that are not laid out. */
function Gap({ height }: { height: number }) {
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row without cells has no focus
  return <tr aria-hidden="true" hidden={height === 0} style={{ height: `${height}px` }} />;
}

/** Rendered again only for another row or other columns, so that sorting moves rows. */
class Cells<Data> extends Component<{ row: Data; columns: readonly Column<Data>[] }> {
  override shouldComponentUpdate(next: Readonly<{ row: Data; columns: readonly Column<Data>[] }>): boolean {
    return next.row !== this.props.row || next.columns !== this.props.columns;
  }

  override render() {
    const { row, columns } = this.props;
    return columns.map(
      ({ name, render, isNumber }) =>
        render && (
          <td key={name} class={isNumber ? "number" : ""}>
            {render(row)}
          </td>
        ),
    );
  }
}

function Heading<Row>({
  column: { name, heading, sort, isNumber },
  current,
}: {
  column: Column<Row>;
  current: string;
}) {
  const direction = current === sort ? "ascending" : current === `-${sort}` ? "descending" : null;
  return (
    <th
      scope="col"
      class={isNumber ? "number" : ""}
      {...(sort && direction ? { "aria-sort": direction } : {})}
    >
      {sort ? (
        <button type="button" onClick={() => sortBy(direction === "descending" ? sort : `-${sort}`)}>
          {name}
          <Arrow direction={direction} />
        </button>
      ) : (
        (heading ?? name)
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
