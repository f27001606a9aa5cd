import assert from "node:assert/strict";
import { test } from "node:test";

import { comparedAccounts } from "../src/loads/records.ts";
import { parseView } from "../src/state/view.ts";

const compared = (ids: string, search = "") =>
  comparedAccounts([...ids], parseView("/creators/1", search).range);

test("the first accounts of a creator are compared by day", () => {
  assert.deepEqual(compared("abcdefg"), ["a", "b", "c", "d", "e"]);
  assert.deepEqual(compared("ab", "?period=90d"), ["a", "b"]);
});

test("without accounts, or of too many days, no days are requested", () => {
  assert.equal(compared(""), null);
  assert.equal(compared("ab", "?period=custom&start_date=2026-01-01&end_date=2026-04-03"), null);
});
