import assert from "node:assert/strict";
import { test } from "node:test";

import { formatView, linkTo, parseView, view } from "../src/state/view.ts";

const ADDRESSES = [
  "/",
  "/?period=7d",
  "/accounts?period=90d&include_today=true&compare=none&platform=tiktok&metric=likes",
  "/?period=90d&metric=engagement_rate&split=platform",
  "/?compare=year&granularity=week&metadata.team=north",
  "/content?sort=-likes&layout=grid&account_id=0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65&media_type=reel&posted_after=2026-01-01&min_views=1000",
  "/content/0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65?metric=likes&values=cumulative",
  "/content?period=custom&start_date=2025-01-01&end_date=2025-02-28&sort=-views&q=a+%26+b",
];

function parse(address: string) {
  const url = new URL(address, "http://localhost");
  return parseView(url.pathname, url.search);
}

test("an address survives parsing and formatting", () => {
  for (const address of ADDRESSES) assert.equal(formatView(parse(address)), address);
});

test("the report of a share names its period always", () => {
  for (const address of ["/shared?period=30d", "/shared?period=7d"])
    assert.equal(formatView(parse(address)), address);
});

test("a link to all records keeps the range, and nothing that leaves some out", () => {
  view.value = parse("/tracking?period=7d&platform=tiktok&category=food&metadata.team=north");
  const status = { status: "active" };
  assert.equal(linkTo("/accounts", status, { isUnfiltered: true }), "/accounts?period=7d&status=active");
  assert.equal(
    linkTo("/accounts", status),
    "/accounts?period=7d&platform=tiktok&category=food&metadata.team=north&status=active",
  );
});

test("older names of the metric are read", () => {
  const current = (address: string) => formatView(parse(address));
  assert.equal(current("/?figure=engagement_rate"), "/?metric=engagement_rate");
  assert.equal(
    current("/content/1?counter=saved_count&values=cumulative"),
    "/content/1?metric=saves&values=cumulative",
  );
  assert.equal(current("/?metric=likes&figure=followers"), "/?metric=followers");
});

test("invalid values fall back to the defaults", () => {
  for (const query of [
    "period=1y",
    "period=custom",
    "period=custom&start_date=2026-02-30&end_date=2026-03-01",
    "period=custom&start_date=2026-02-02&end_date=2026-02-01",
    "platform=myspace",
    "metric=love",
    "figure=love",
    "counter=love_count",
    "values=both",
    "q=",
  ]) {
    assert.equal(formatView(parse(`/?${query}`)), "/", query);
  }
});
