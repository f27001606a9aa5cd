import assert from "node:assert/strict";
import { test } from "node:test";

import { dayTicks, tickTexts, valueTicks } from "../src/charts/ticks.ts";

function dates(start: string, count: number): string[] {
  const first = Date.parse(`${start}T00:00:00Z`);
  return Array.from({ length: count }, (_, number) =>
    new Date(first + number * 86_400_000).toISOString().slice(0, 10),
  );
}

test("value ticks enclose the values and zero", () => {
  assert.deepEqual(valueTicks([3, 97]), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(valueTicks([-40, null, 90]), [-50, 0, 50, 100]);
  assert.deepEqual(valueTicks([]), [0, 1]);
  assert.deepEqual(valueTicks([0, 0]), [0, 1]);
  assert.deepEqual(valueTicks([1]), [0, 1]);
  const ticks = valueTicks([10_000_000, 12]);
  assert.ok((ticks.at(-1) ?? 0) >= 10_000_000 && ticks[0] === 0);
});

test("day ticks are all days, Mondays, or months", () => {
  assert.deepEqual(dayTicks(dates("2026-03-02", 7), 8), [0, 1, 2, 3, 4, 5, 6]);
  assert.deepEqual(dayTicks(dates("2026-03-01", 30), 8), [1, 8, 15, 22, 29]);
  const year = dates("2026-01-01", 365);
  assert.deepEqual(
    dayTicks(year, 12).map((position) => year[position]?.slice(5)),
    [
      "01-01",
      "02-01",
      "03-01",
      "04-01",
      "05-01",
      "06-01",
      "07-01",
      "08-01",
      "09-01",
      "10-01",
      "11-01",
      "12-01",
    ],
  );
  assert.equal(dayTicks(year, 4).length, 4);
  assert.ok(dayTicks(dates("2024-01-01", 731), 4).length <= 4);
});

test("ticks of a level need not begin at zero", () => {
  assert.deepEqual(
    valueTicks([1_020_000, 1_090_000], 4, "least"),
    [1_020_000, 1_040_000, 1_060_000, 1_080_000, 1_100_000],
  );
  assert.deepEqual(valueTicks([500, 500], 4, "least"), [499, 500, 501]);
  assert.deepEqual(valueTicks([null], 4, "least"), [0, 1]);
});

test("ticks of rates are fractions", () => {
  assert.deepEqual(valueTicks([0.031, 0.058]), [0, 0.02, 0.04, 0.06]);
  assert.deepEqual(tickTexts([0, 0.02, 0.04, 0.06], true), ["0", "2 %", "4 %", "6 %"]);
  assert.deepEqual(tickTexts([0, 0.005, 0.01], true), ["0", "0.5 %", "1.0 %"]);
});

test("tick texts share a unit and differ", () => {
  assert.deepEqual(tickTexts([0, 500, 1_000]), ["0", "0.5k", "1.0k"]);
  assert.deepEqual(tickTexts([-50, 0, 50]), ["−50", "0", "50"]);
  assert.deepEqual(tickTexts([1_020_000, 1_040_000, 1_060_000]), ["1.02M", "1.04M", "1.06M"]);
  assert.deepEqual(tickTexts([0, 5_000_000, 10_000_000]), ["0", "5M", "10M"]);
});

test("tick texts of close values differ in every unit", () => {
  for (const unit of [1, 1e3, 1e6, 1e9, 1e12]) {
    for (const step of [1, 2, 500, 1_000]) {
      const ticks = valueTicks([3 * unit, 3 * unit + 2 * step], 4, "least");
      assert.equal(new Set(tickTexts(ticks)).size, ticks.length, String(ticks));
    }
  }
  assert.deepEqual(tickTexts([1e9, 1e9 + 500, 1e9 + 1_000]), ["1.0000000B", "1.0000005B", "1.0000010B"]);
});
