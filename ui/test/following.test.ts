import assert from "node:assert/strict";
import { test } from "node:test";

import type { Import } from "../src/loads/imports.ts";

// Before the modules that extend them are loaded: in Node.js, only absolute URLs can be requested.
globalThis.Request = class extends Request {
  constructor(input: RequestInfo | URL, init?: RequestInit) {
    super(typeof input === "string" ? new URL(input, "http://localhost") : input, init);
  }
};

test("a running import is followed although single answers fail", async (context) => {
  const { followImport } = await import("../src/loads/imports.ts");
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const follow = async (answers: (Response | Error)[]) => {
    globalThis.fetch = async () => {
      const next = answers.shift();
      if (next instanceof Response) return next;
      throw next;
    };
    let isOver = false;
    const start = { id: "1", status: "running" } as Import;
    const end = followImport(start, () => {}, new AbortController().signal).finally(() => {
      isOver = true;
    });
    end.catch(() => {});
    while (!isOver) {
      context.mock.timers.tick(5_000);
      await new Promise(setImmediate);
    }
    return end;
  };
  const failed = [429, 500, 503].map((status) => Response.json({}, { status }));
  const done = Response.json({ data: { id: "1", status: "succeeded" } });
  assert.equal((await follow([new TypeError("offline"), ...failed, done])).status, "succeeded");
  await assert.rejects(follow([Response.json({ detail: "gone" }, { status: 404 })]), { status: 404 });
});
