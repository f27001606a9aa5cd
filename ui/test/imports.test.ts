import assert from "node:assert/strict";
import { test } from "node:test";

import { NO_OPTIONS, uploadQuery } from "../src/loads/imports.ts";

test("an upload names what was given, and nothing else", () => {
  assert.equal(uploadQuery("posts.csv", NO_OPTIONS, false).toString(), "filename=posts.csv");
  const options = {
    platform: "tiktok",
    username: " @low.tide ",
    observedAt: "2026-01-05",
    timeZone: "Europe/Berlin",
    dayFirst: true,
    track: true,
  } as const;
  assert.deepEqual(Object.fromEntries(uploadQuery("a.csv", options, true)), {
    filename: "a.csv",
    platform: "tiktok",
    username: "@low.tide",
    observed_at: "2026-01-05",
    time_zone: "Europe/Berlin",
    day_first: "true",
    track: "true",
    dry_run: "true",
  });
});

test("of a long name the end is sent, without cutting a letter", () => {
  const sent = uploadQuery(`${"\u{1f30a}".repeat(300)}.csv`, NO_OPTIONS, false).get("filename") ?? "";
  assert.equal([...sent].length, 255);
  assert.ok(sent.endsWith(".csv"));
});
