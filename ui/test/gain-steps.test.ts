import assert from "node:assert/strict";
import { test } from "node:test";

import { spreadGains } from "../src/pages/video/gain-steps.ts";

const day = (number: number) => `2026-03-${String(number).padStart(2, "0")}`;

test("a gain of several days is drawn over these, and says since when", () => {
  const days = [1, 2, 3, 4, 5].map((number) => ({
    date: day(number),
    since: number === 2 ? day(1) : number === 5 ? day(2) : null,
  }));
  const spread = spreadGains(days, [null, 20, null, null, 90]);
  assert.deepEqual(spread?.steps, [null, 20, 30, 30, 30]);
  assert.deepEqual([...(spread?.notes ?? [])], [[4, "since 2 Mar"]]);
});

test("a gain since a day before the range is drawn within it", () => {
  const spread = spreadGains([{ date: day(1) }, { date: day(2), since: "2026-02-23" }], [null, 700]);
  assert.deepEqual(spread?.steps, [100, 100]);
});

test("gains of single days are as they are", () => {
  assert.equal(
    spreadGains(
      [
        { date: day(1), since: null },
        { date: day(2), since: day(1) },
      ],
      [3, 4],
    ),
    null,
  );
});
