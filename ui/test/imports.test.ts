import assert from "node:assert/strict";
import { test } from "node:test";

import { ApiProblem } from "../src/api/client.ts";
import { NO_OPTIONS, sendFile, uploadQuery } from "../src/loads/imports.ts";

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

/** Answers an upload. */
function answer(status: number, responseText: string): void {
  globalThis.XMLHttpRequest = class {
    status = status;
    responseText = responseText;
    upload = {};
    onload = () => {};
    open() {}
    setRequestHeader() {}
    getResponseHeader() {
      return null;
    }
    send() {
      setTimeout(() => this.onload());
    }
  } as unknown as typeof XMLHttpRequest;
}

test("an answer that is no JSON is a problem", async () => {
  const send = () =>
    sendFile(new File([], ""), new URLSearchParams(), () => {}, new AbortController().signal);
  for (const [status, known] of [
    [200, 0],
    [413, 413],
    [502, 502],
  ] as const) {
    answer(status, "<html>");
    await assert.rejects(send, (cause) => cause instanceof ApiProblem && cause.status === known);
  }
  answer(422, '{"detail":"no table"}');
  await assert.rejects(send, { status: 422, message: "no table" });
  answer(202, '{"data":{"id":"1"}}');
  assert.deepEqual(await send(), { id: "1" });
});
