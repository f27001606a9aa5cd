// A table: columns that sort by the address, and a CSV of what it shows.

import type { ComponentChildren } from "preact";

import { navigate, view } from "../state/view.ts";

export interface Column<Row> {
  name: string;
  render: (row: Row) => ComponentChildren;
  /** The value in the CSV; columns without one are not in it. */
  csv?: (row: Row) => string | number | null;
  isNumber?: boolean;
  /** The value of `sort` in the address that sorts by this column, descending. */
  sort?: string;
}

interface Props<Row> {
  title: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
}

export function Table<Row>({ title, columns, rows, rowKey }: Props<Row>) {
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={title}>
      <table>
        <thead>
          <tr>{columns.map((column) => <Heading key={column.name} column={column} />)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map(({ name, render, isNumber }) => <td key={name} class={isNumber ? "number" : ""}>{render(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Heading<Row>({ column: { name, sort, isNumber } }: { column: Column<Row> }) {
  const current = view.value.filters.get("sort") ?? "";
  const direction = current === sort ? "ascending" : current === `-${sort}` ? "descending" : null;
  return (
    <th scope="col" class={isNumber ? "number" : ""} {...(sort && direction ? { "aria-sort": direction } : {})}>
      {sort ? <button type="button" onClick={() => sortBy(direction === "descending" ? sort : `-${sort}`)}>{name}{direction && (direction === "descending" ? " ↓" : " ↑")}</button> : name}
    </th>
  );
}

function sortBy(sort: string): void {
  navigate({ filters: new Map(view.value.filters).set("sort", sort) }, { replace: true });
}

const NEEDS_QUOTES = /[",\r\n]/;
/** Spreadsheets read text that begins like this as a formula. */
const IS_FORMULA = /^[=+\-@\t\r]/;

function csvField(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = IS_FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** RFC 4180, with a header row. */
export function formatCsv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const shown = columns.filter((column) => column.csv);
  const lines = [shown.map(({ name }) => csvField(name)), ...rows.map((row) => shown.map(({ csv }) => csvField(csv?.(row) ?? null)))];
  return lines.map((fields) => `${fields.join(",")}\r\n`).join("");
}

/** Saves the rows of a table as a file. */
export function CsvButton<Row>({ title, columns, rows }: Pick<Props<Row>, "title" | "columns" | "rows">) {
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([formatCsv(columns, rows)], { type: "text/csv" }));
    link.download = `${title.toLowerCase().replace(/\W+/g, "-")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
  };
  return <button type="button" class="plain small" onClick={save} disabled={rows.length === 0}>CSV</button>;
}
