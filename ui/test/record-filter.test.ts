import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement } from "preact";

import { parseView, view } from "../src/state/view.ts";
import { emptyPage } from "./rendering.ts";

// Before the modules that extend them are loaded: in Node.js, only absolute URLs can be requested.
globalThis.Request = class extends Request {
  constructor(input: RequestInfo | URL, init?: RequestInit) {
    super(typeof input === "string" ? new URL(input, "http://localhost") : input, init);
  }
};
/** Answers for creator 1 only. */
globalThis.fetch = (request) =>
  (request as Request).url.endsWith("/creators/1")
    ? Promise.resolve(Response.json({ data: { name: "Ann" } }))
    : new Promise(() => {});

test("a filter never shows the name of another record", async () => {
  const { RecordFilter } = await import("../src/components/record-pickers.tsx");
  const page = emptyPage();
  const show = (search: string) => {
    view.value = parseView("/content", search);
    return page.render(
      createElement(RecordFilter, { name: "creator_id", label: "Creator", placeholder: "" }),
    );
  };
  for (const between of ["", "?creator_id=1"]) {
    await show("?creator_id=1");
    for (let turns = 0; turns < 100 && !page.text().startsWith("Ann"); turns++) await show("?creator_id=1");
    assert.match(page.text(), /^Ann/);
    await show(between);
    await show("?creator_id=2");
    assert.match(page.text(), /^…/);
  }
});
