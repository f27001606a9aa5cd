import assert from "node:assert/strict";
import { test } from "node:test";

import { bandPath, linearScale, linePath } from "../src/charts/paths.ts";

const identity = (value: number) => value;
const plain = { x: identity, y: identity };

test("a scale goes from values to pixels and back", () => {
  const scale = linearScale([10, 20], [100, 0]);
  assert.deepEqual([scale(10), scale(15), scale(20), scale(25)], [100, 50, 0, -50]);
  assert.equal(scale.invert(50), 15);
});

test("a single value is in the middle", () => {
  assert.equal(linearScale([3, 3], [0, 100])(3), 50);
});

test("steps change halfway between positions", () => {
  assert.equal(linePath([1, 3], { ...plain, hasSteps: true }), "M0,1L0.5,1L0.5,3L1,3");
  assert.equal(linePath([null, 2], { ...plain, hasSteps: true }), "M1,2Z");
});

test("a band goes along its upper line and back along its lower one", () => {
  assert.equal(bandPath([0, 0, null, 1], [1, 2, null, 3], plain), "M0,1L1,2L1,0L0,0ZM3,3L3,1Z");
});

test("coordinates have at most three decimals", () => {
  assert.equal(linePath([1 / 3, 2 / 3], plain), "M0,0.333L1,0.667");
});
