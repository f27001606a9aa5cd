import assert from "node:assert/strict";
import { test } from "node:test";

import { describe } from "../src/charts/cursor.tsx";
import type { Series } from "../src/charts/series.ts";
import { exact } from "../src/format.ts";

const SERIES: Series[] = [
  { name: "Total", values: [1_204, null], colour: 1 },
  { name: "Before", values: [null, -3], colour: 1, isPrevious: true },
];

test("a day is described with exact values, unknown ones as a dash", () => {
  assert.equal(describe("8 Mar 2026", 0, SERIES, exact), "8 Mar 2026: Total 1\u2009204, Before –");
  assert.equal(describe("9 Mar 2026", 1, SERIES, exact), "9 Mar 2026: Total –, Before −3");
});

test("a gain says since when it was gained", () => {
  const series: Series[] = [
    { name: "Views", values: [700], colour: 1, notes: new Map([[0, "since 1 Mar"]]) },
  ];
  assert.equal(describe("8 Mar 2026", 0, series, exact), "8 Mar 2026: Views 700 since 1 Mar");
});
