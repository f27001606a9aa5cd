import assert from "node:assert/strict";
import { test } from "node:test";

import { reasonOf } from "../src/tracking-reason.ts";

test("an active record needs no reason, every other status has one", () => {
  assert.equal(reasonOf({ status: "active", last_error: null }), null);
  for (const status of [
    "pending",
    "paused",
    "paused_by_creator",
    "unsupported",
    "unavailable",
    "failing",
  ] as const) {
    assert.match(reasonOf({ status, last_error: null }) ?? "", /^[A-Z].*\.$/, status);
  }
});

test("errors are explained by their kind, others are shown as sentences", () => {
  const reason = (last_error: string) => reasonOf({ status: "failing", last_error });
  assert.equal(reason("temporary failure: timeout"), "The platform did not answer, or not in time.");
  assert.match(reason("not found, or private: x") ?? "", /^The platform does not show it/);
  assert.equal(
    reason("the username a now belongs to another account"),
    "The username a now belongs to another account.",
  );
  assert.match(
    reasonOf({ status: "unavailable", last_error: "the username a shows none of its posts: correct it" }) ??
      "",
    /^The username a/,
  );
});
