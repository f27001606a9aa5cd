import assert from "node:assert/strict";
import { test } from "node:test";

import { elementsOf, isLoadedAgain, nearRows } from "../src/components/near-rows.ts";

const range = (top: number, bottom: number, count: number) => {
  const { from, to } = nearRows(top, bottom, count, 50);
  return [from, to];
};

test("rows of the screen and some around it are near", () => {
  assert.deepEqual(range(-300, 600, 300), [0, 14]);
  assert.deepEqual(range(5_000, 5_900, 300), [98, 120]);
});

test("no row outside the table is near", () => {
  assert.deepEqual(range(14_800, 15_700, 300), [294, 300]);
  assert.deepEqual(range(20_000, 20_900, 300), [300, 300]);
  assert.deepEqual(range(-2_000, -1_100, 300), [0, 0]);
});

test("a list that is loaded again has few new rows, in whatever order", () => {
  const keys = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => String(from + n));
  assert.ok(isLoadedAgain(keys(0, 100), ["new", ...keys(0, 99).reverse()]));
  assert.ok(isLoadedAgain(keys(0, 100), keys(20, 100)));
  assert.ok(!isLoadedAgain(keys(0, 50), keys(0, 100)));
  assert.ok(!isLoadedAgain([], keys(0, 100)));
});

test("elements of another order stay, those of a list that is loaded again follow their records", () => {
  const before = elementsOf({ keys: [], numbers: [], next: 0 }, ["a", "b", "c"], false);
  assert.deepEqual(before.numbers, [0, 1, 2]);
  assert.deepEqual(elementsOf(before, ["c", "b", "a", "d"], false).numbers, [0, 1, 2, 6]);
  const again = elementsOf(before, ["c", "d", "a"], true);
  assert.deepEqual(again.numbers, [2, 4, 0]);
  assert.deepEqual(elementsOf(again, ["d", "e"], true).numbers, [4, 7]);
});
