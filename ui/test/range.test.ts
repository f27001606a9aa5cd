import assert from "node:assert/strict";
import { test } from "node:test";

import {
  daysOf,
  hasToday,
  PERIODS,
  type Period,
  rangeDays,
  utcToday,
  windowParameters,
} from "../src/state/range.ts";
import { parseView } from "../src/state/view.ts";

function parse(address: string) {
  const url = new URL(address, "http://localhost");
  return parseView(url.pathname, url.search);
}

test("a range becomes parameters of the API", () => {
  const wholeDays = { period: "30d", include_today: false };
  assert.deepEqual(windowParameters(parse("/").range), wholeDays);
  assert.deepEqual(windowParameters(parse("/?include_today=false").range), wholeDays);
  assert.deepEqual(windowParameters(parse("/?include_today=true").range), { period: "30d" });
  assert.deepEqual(
    windowParameters(parse("/?period=custom&start_date=2025-01-01&end_date=2025-02-28").range),
    {
      period: "custom",
      start_date: "2025-01-01",
      end_date: "2025-02-28",
    },
  );
});

test("a range has a number of days", () => {
  const days = (query: string) => rangeDays(parse(`/?${query}`).range);
  assert.deepEqual(["", "period=7d", "period=90d&include_today=false"].map(days), [30, 7, 90]);
  assert.equal(days("period=custom&start_date=2025-03-01&end_date=2025-03-01"), 1);
  assert.equal(days("period=custom&start_date=2023-11-23&end_date=2025-11-22"), 731);
});

test("a range does not reach into the future", () => {
  const today = utcToday();
  const custom = (start: string, end: string) =>
    parse(`/?period=custom&start_date=${start}&end_date=${end}`).range;
  assert.equal(custom("2025-01-01", "2999-01-01").end, today);
  assert.equal(custom("2999-01-01", "2999-01-02").period, "30d");
  assert.equal(hasToday(custom("2025-01-01", "2999-01-01")), true);
  assert.equal(hasToday(custom("2025-01-01", "2025-01-02")), false);
});

test("the first day of a range is as many days before today as it has whole days", () => {
  const daysAgo = (query: string) =>
    (Date.parse(utcToday()) - Date.parse(daysOf(parse(query).range).start)) / 86_400_000;
  assert.deepEqual(["/", "/?include_today=true", "/?period=7d"].map(daysAgo), [30, 29, 7]);
});

test("periods of the calendar have their days", () => {
  const days = (period: Period, today: string, includeToday = false) => {
    const { start, end } = daysOf({ period, start: null, end: null, includeToday }, today);
    return `${start} ${end}`;
  };
  // A Sunday.
  assert.equal(days("28d", "2026-11-29"), "2026-11-01 2026-11-28");
  assert.equal(days("28d", "2026-11-29", true), "2026-11-02 2026-11-29");
  assert.equal(days("this_week", "2026-11-29"), "2026-11-23 2026-11-28");
  assert.equal(days("last_week", "2026-11-29"), "2026-11-16 2026-11-22");
  assert.equal(days("this_month", "2026-11-29"), "2026-11-01 2026-11-28");
  assert.equal(days("last_month", "2026-03-01"), "2026-02-01 2026-02-28");
  assert.equal(days("this_quarter", "2026-11-29"), "2026-10-01 2026-11-28");
  assert.equal(days("last_quarter", "2026-02-10"), "2025-10-01 2025-12-31");
  assert.equal(days("this_year", "2026-11-29"), "2026-01-01 2026-11-28");
  assert.equal(days("last_year", "2026-11-29"), "2025-01-01 2025-12-31");
  assert.equal(days("731d", "2026-11-29"), "2024-11-28 2026-11-28");
  // The first day of a week and a month: there is no whole day yet.
  assert.equal(days("this_week", "2026-06-01"), "2026-06-01 2026-06-01");
  assert.equal(days("this_month", "2026-06-01"), "2026-06-01 2026-06-01");
});

test("every period survives the address, and the API takes it", () => {
  for (const period of PERIODS) {
    const { range } = parse(`/?period=${period}`);
    assert.equal(range.period, period);
    assert.ok(rangeDays(range) <= 731, period);
    const parameters = windowParameters(range);
    assert.ok(["7d", "30d", "90d", "custom"].includes(parameters.period), period);
  }
});
