import assert from "node:assert/strict";
import { test } from "node:test";

import { formatView, parseView, windowParameters } from "../src/state/view.ts";

const ADDRESSES = [
  "/",
  "/?period=7d",
  "/accounts?period=90d&include_today=false&compare=none&platform=tiktok&metric=likes",
  "/content?period=custom&start_date=2026-01-01&end_date=2026-02-28&sort=-views&q=a+%26+b",
];

function parse(address: string) {
  const url = new URL(address, "http://localhost");
  return parseView(url.pathname, url.search);
}

test("an address survives parsing and formatting", () => {
  for (const address of ADDRESSES) assert.equal(formatView(parse(address)), address);
});

test("invalid values fall back to the defaults", () => {
  for (const query of [
    "period=1y", "period=custom", "period=custom&start_date=2026-02-30&end_date=2026-03-01",
    "period=custom&start_date=2026-02-02&end_date=2026-02-01", "platform=myspace", "metric=love", "q=",
  ]) {
    assert.equal(formatView(parse(`/?${query}`)), "/", query);
  }
});

test("a range becomes parameters of the API", () => {
  assert.deepEqual(windowParameters(parse("/").range), { period: "30d" });
  assert.deepEqual(windowParameters(parse("/?include_today=false").range), { period: "30d", include_today: false });
  assert.deepEqual(windowParameters(parse(ADDRESSES[3] ?? "").range), {
    period: "custom", start_date: "2026-01-01", end_date: "2026-02-28",
  });
});
