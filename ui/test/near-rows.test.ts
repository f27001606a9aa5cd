import assert from "node:assert/strict";
import { test } from "node:test";

import { nearRows } from "../src/components/near-rows.ts";

const range = (top: number, bottom: number, count: number) => {
  const { from, to } = nearRows(top, bottom, count, 50);
  return [from, to];
};

test("rows of the screen and some around it are near", () => {
  assert.deepEqual(range(-300, 600, 300), [0, 20]);
  assert.deepEqual(range(5_000, 5_900, 300), [95, 125]);
});

test("no row outside the table is near", () => {
  assert.deepEqual(range(14_800, 15_700, 300), [290, 300]);
  assert.deepEqual(range(20_000, 20_900, 300), [300, 300]);
  assert.deepEqual(range(-2_000, -1_100, 300), [0, 0]);
});
