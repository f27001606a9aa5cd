// Tables as CSV (RFC 4180).

export type CsvValue = string | number | null | undefined;

export interface CsvColumn<Row> {
  name: string;
  /** The value in the CSV; columns without one are not in it. */
  csv?: (row: Row) => CsvValue;
}

const NEEDS_QUOTES = /[",\r\n]/;
/** Spreadsheets read text that begins like this as a formula. */
const IS_FORMULA = /^[=+\-@\t\r]/;

function formatField(value: CsvValue): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = IS_FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A header row, then the rows. */
export function formatCsv<Row>(columns: readonly CsvColumn<Row>[], rows: readonly Row[]): string {
  const shown = columns.filter(({ csv }) => csv);
  const lines = [
    shown.map(({ name }) => formatField(name)),
    ...rows.map((row) => shown.map(({ csv }) => formatField(csv?.(row)))),
  ];
  return lines.map((fields) => `${fields.join(",")}\r\n`).join("");
}

/** Lets the browser save a file. */
export function saveFile(title: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = `${title.toLowerCase().replace(/\W+/g, "-")}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}
