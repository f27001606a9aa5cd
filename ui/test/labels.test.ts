import assert from "node:assert/strict";
import { test } from "node:test";

import { fitName, placeLabels } from "../src/charts/labels.ts";

test("labels with room stay where they belong", () => {
  assert.deepEqual(placeLabels([100, 20, 60], 14, 0, 200), [100, 20, 60]);
  assert.deepEqual(placeLabels([], 14, 0, 200), []);
});

test("labels that would overlap spread around their middle, in order", () => {
  assert.deepEqual(placeLabels([100, 100], 14, 0, 200), [93, 107]);
  assert.deepEqual(placeLabels([102, 98], 14, 0, 200), [107, 93]);
  assert.deepEqual(placeLabels([50, 52, 64], 10, 0, 200).map(Math.round), [45, 55, 65]);
});

test("labels stay inside the chart", () => {
  assert.deepEqual(placeLabels([0, 0, 0], 10, 0, 100), [0, 10, 20]);
  assert.deepEqual(placeLabels([100, 100, 100], 10, 0, 100), [80, 90, 100]);
});

test("random labels neither overlap nor leave, and keep their order", () => {
  const seed = Number(process.env.TIDEMARK_TEST_SEED ?? Date.now() % 100_000);
  let state = seed;
  const random = () => {
    state = (state * 48_271 + 11) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  for (let round = 0; round < 500; round++) {
    const wanted = Array.from({ length: 1 + Math.floor(random() * 8) }, () => random() * 220);
    const placed = placeLabels(wanted, 15, 12, 234);
    const sorted = wanted
      .map((_, index) => index)
      .sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0) || a - b)
      .map((index) => placed[index] ?? NaN);
    const message = `seed ${seed}: ${JSON.stringify(wanted)} became ${JSON.stringify(placed)}`;
    sorted.forEach((at, index) => {
      assert.ok(at >= 12 - 1e-9 && at <= 234 + 1e-9, message);
      if (index > 0) assert.ok(at - (sorted[index - 1] ?? 0) >= 15 - 1e-9, message);
    });
  }
});

test("long names are cut", () => {
  assert.equal(fitName("Marta", 60), "Marta");
  assert.equal(fitName("Marta Soares de Almeida", 64), "Marta Soa…");
  assert.equal(fitName("🏄🏄🏄🏄🏄🏄", 20), "🏄🏄…");
});
