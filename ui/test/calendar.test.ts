import assert from "node:assert/strict";
import { test } from "node:test";

import { weeksOf } from "../src/components/weeks.ts";

test("a calendar has whole weeks from Monday, with days of the range only", () => {
  // 1 March 2026 is a Sunday.
  assert.deepEqual(weeksOf("2026-02-28", "2026-03-03"), [
    [null, null, null, null, null, "2026-02-28", "2026-03-01"],
    ["2026-03-02", "2026-03-03", null, null, null, null, null],
  ]);
  assert.equal(weeksOf("2026-03-02", "2026-03-08").length, 1);
});
