import assert from "node:assert/strict";
import { test } from "node:test";

import { formatCsv } from "../src/csv.ts";

interface Row {
  name: string | null;
  gain: number | null;
}

const COLUMNS = [
  { name: "Name", csv: (row: Row) => row.name },
  { name: "Picture" },
  { name: "Gain, all", csv: (row: Row) => row.gain },
];

function field(name: string | null): string {
  return formatCsv(COLUMNS.slice(0, 1), [{ name, gain: 0 }]).slice("Name\r\n".length, -"\r\n".length);
}

test("a table has a header and ends each line with CR LF", () => {
  assert.equal(
    formatCsv(COLUMNS, [
      { name: "salt", gain: -5 },
      { name: null, gain: null },
    ]),
    'Name,"Gain, all"\r\nsalt,-5\r\n,\r\n',
  );
  assert.equal(formatCsv(COLUMNS, []), 'Name,"Gain, all"\r\n');
});

test("quotes, commas and line breaks are quoted", () => {
  assert.equal(field('say "hi"'), '"say ""hi"""');
  assert.equal(field("a,b"), '"a,b"');
  assert.equal(field("a\nb"), '"a\nb"');
  assert.equal(field("مرحبا 🌊"), "مرحبا 🌊");
});

test("text that a spreadsheet would run is made text", () => {
  for (const start of ["=", "+", "-", "@", "\t"]) assert.equal(field(`${start}1`), `'${start}1`);
  assert.equal(field("\r1"), '"\'\r1"');
});
