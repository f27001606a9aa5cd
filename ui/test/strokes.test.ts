import assert from "node:assert/strict";
import { test } from "node:test";

import { lonePositions, strokes } from "../src/charts/strokes.ts";

const identity = (value: number) => value;

test("a day between gaps stands alone", () => {
  assert.deepEqual(lonePositions([1, null, 2, null, 3, 4]), [0, 2]);
  assert.deepEqual(lonePositions([5]), [0]);
  assert.deepEqual(lonePositions([null]), []);
  assert.deepEqual(lonePositions([]), []);
});

test("a gap interrupts the line, a lone day is a dot", () => {
  const { complete, running, lone } = strokes([1, 2, null, 4, null, 6, 7], -1, identity, identity);
  assert.equal(complete, "M0,1L1,2M3,4ZM5,6L6,7");
  assert.equal(running, "");
  assert.equal(lone, "M3,4h0");
});

test("today is drawn apart, from the last complete day", () => {
  const { complete, running, lone } = strokes([1, 2, 3], 2, identity, identity);
  assert.deepEqual([complete, running, lone], ["M0,1L1,2", "M1,2L2,3", ""]);
});

test("today alone is a dot", () => {
  assert.equal(strokes([7], 0, identity, identity).lone, "M0,7h0");
  assert.equal(strokes([1, null, 7], 2, identity, identity).lone, "M0,1h0M2,7h0");
});

test("two years of days are one line", () => {
  const { complete } = strokes(
    Array.from({ length: 731 }, (_, day) => day % 7),
    730,
    identity,
    identity,
  );
  assert.equal(complete.split("L").length, 730);
});
