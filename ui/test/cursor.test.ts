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
  const dates = ["2026-03-08", "2026-03-09"];
  assert.equal(describe(0, dates, SERIES, exact), "8 Mar 2026: Total 1\u2009204, Before –");
  assert.equal(describe(1, dates, SERIES, exact), "9 Mar 2026: Total –, Before −3");
});
