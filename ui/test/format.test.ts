import assert from "node:assert/strict";
import { test } from "node:test";

import {
  change,
  clock,
  compact,
  day,
  days,
  duration,
  exact,
  gain,
  initials,
  rate,
  time,
  times,
} from "../src/format.ts";

test("exact numbers have groups of three", () => {
  assert.equal(exact(0), "0");
  assert.equal(exact(999), "999");
  assert.equal(exact(1_204_558), "1\u2009204\u2009558");
  assert.equal(exact(-1_000), "−1\u2009000");
  assert.equal(exact(1_234.5678), "1\u2009234.5678");
  assert.equal(exact(0.048312), "0.048312");
  assert.equal(exact(null), "–");
});

test("compact numbers are rounded to three digits", () => {
  const cases: [number | null, string][] = [
    [0, "0"],
    [12, "12"],
    [999, "999"],
    [1_000, "1.00k"],
    [1_254, "1.25k"],
    [5_391_553, "5.39M"],
    [9_999, "10.0k"],
    [99_999, "100k"],
    [999_400, "999k"],
    [999_999, "1.00M"],
    [1_000_000, "1.00M"],
    [10_000_000, "10.0M"],
    [123_456_789, "123M"],
    [1_500_000_000, "1.50B"],
    [-1_256, "−1.26k"],
    [null, "–"],
  ];
  for (const [value, text] of cases) assert.equal(compact(value), text);
});

test("gains have a sign", () => {
  assert.deepEqual([gain(1_200), gain(0), gain(-5), gain(undefined)], ["+1.20k", "0", "−5", "–"]);
});

test("rates and changes are percentages", () => {
  assert.deepEqual(
    [rate(0.0483), rate(0), rate(-0.5), rate(null)],
    ["4.83\u2009%", "0.00\u2009%", "−50.00\u2009%", "–"],
  );
  assert.deepEqual(
    [change(12.54), change(-3), change(0), change(123.4), change(999.4), change(null)],
    ["+12.5\u2009%", "−3\u2009%", "0\u2009%", "+123\u2009%", "+999\u2009%", "–"],
  );
  assert.deepEqual([change(1_000), change(1_900), change(123_400)], ["×11", "×20", "×1\u2009235"]);
});

test("multiples have a digit after the point while it matters", () => {
  assert.deepEqual([3.42, 99.96, 1_220.68, null].map(times), [
    "3.4\u2009×",
    "100\u2009×",
    "1\u2009221\u2009×",
    "–",
  ]);
});

test("days and times are UTC", () => {
  assert.equal(day("2026-03-09"), "9 Mar 2026");
  assert.equal(day("2026-03-09", "2026-12-31"), "9 Mar");
  assert.equal(days("2026-03-09", "2026-04-07"), "9 Mar – 7 Apr 2026");
  assert.equal(days("2025-12-31", "2026-01-01"), "31 Dec 2025 – 1 Jan 2026");
  assert.equal(days("2026-01-01", "2026-01-01"), "1 Jan 2026");
  assert.equal(time("2026-03-09T23:05:59.123456Z"), "9 Mar 2026, 23:05 UTC");
  assert.equal(time(null), "–");
});

test("durations use the largest unit", () => {
  const texts = [0, 59, 60, 3_599, 7_200, 86_400 * 5].map(duration);
  assert.deepEqual(texts, ["0\u2009s", "59\u2009s", "1\u2009min", "59\u2009min", "2\u2009h", "5\u2009d"]);
});

test("the length of a video has minutes and seconds", () => {
  assert.deepEqual([7, 83, 599.6, 3_723, 0].map(clock), ["0:07", "1:23", "10:00", "1:02:03", "0:00"]);
});

test("initials skip punctuation and know every script", () => {
  const texts = ["salt.and.tide", "Zoë", "_x_", "م نور", "…", "🏄 surf"].map(initials);
  assert.deepEqual(texts, ["SA", "Z", "X", "من", "?", "S"]);
});
