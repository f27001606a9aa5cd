import assert from "node:assert/strict";
import { test } from "node:test";

import { asCurl, RecordedRequest, requestsOf } from "../src/api/requests.ts";

test("requests are remembered by their signal", () => {
  const [one, other] = [new AbortController().signal, new AbortController().signal];
  new RecordedRequest("http://localhost/v2/overview", { signal: one });
  new RecordedRequest("http://localhost/v2/content/top?limit=6", { signal: one });
  new RecordedRequest("http://localhost/v2/whoami");
  assert.deepEqual(requestsOf(one), [
    "http://localhost/v2/overview",
    "http://localhost/v2/content/top?limit=6",
  ]);
  assert.deepEqual(requestsOf(other), []);
});

test("curl commands hold no key and survive quotes", () => {
  const url = "http://localhost/v2/content?q=it's";
  assert.equal(
    asCurl([url, url]),
    `curl -H "Authorization: Bearer $TIDEMARK_KEY" 'http://localhost/v2/content?q=it%27s'\n`,
  );
});
