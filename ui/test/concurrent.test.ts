import assert from "node:assert/strict";
import { test } from "node:test";

import { ApiProblem } from "../src/api/client.ts";
import { requestEach } from "../src/api/concurrent.ts";

test("each outcome is reported at its position, and at most four requests run", async () => {
  let [running, most] = [0, 0];
  const outcomes: unknown[] = [];
  const send = async (item: number) => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    if (item === 3) throw new ApiProblem(422, { detail: "no" });
    return item * 10;
  };
  await requestEach([1, 2, 3, 4, 5, 6, 7], new AbortController().signal, send, (index, outcome) => {
    outcomes[index] = outcome instanceof ApiProblem ? outcome.message : outcome;
  });
  assert.deepEqual(outcomes, [10, 20, "no", 40, 50, 60, 70]);
  assert.equal(most, 4);
});

test("after an abort no request starts and nothing is reported", async () => {
  const controller = new AbortController();
  const sent: number[] = [];
  await requestEach([1, 2, 3, 4, 5, 6], controller.signal, async (item) => {
    sent.push(item);
    controller.abort();
    return item;
  }, () => assert.fail("reported"));
  assert.deepEqual(sent, [1]);
});

test("a rate limited request is sent again after the time that the response names", async () => {
  let attempts = 0;
  const outcomes: unknown[] = [];
  await requestEach(["one"], new AbortController().signal, async () => {
    if (++attempts === 1) throw new ApiProblem(429, {}, 0);
    return "sent";
  }, (_, outcome) => outcomes.push(outcome));
  assert.deepEqual([attempts, outcomes], [2, ["sent"]]);
});
