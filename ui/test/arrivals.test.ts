import assert from "node:assert/strict";
import { test } from "node:test";

import type { AccountPage, AccountRow } from "../src/loads/account-rows.ts";
import { useArrivals } from "../src/pages/accounts/arrivals.ts";
import { rendered } from "./rendering.ts";

const row = (status: "pending" | "active") => ({ tracking: { status } }) as AccountRow;

test("a table whose accounts are never read stops loading again", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let reloads = 0;
  const refresh = () => void reloads++;
  const list = (rows: AccountRow[]) => ({ rows }) as unknown as { rows: AccountRow[]; page: AccountPage };
  const probe = rendered((rows: AccountRow[]) => useArrivals({ data: list(rows) as never, refresh }));
  for (let round = 0; round < 30; round++) {
    await probe.render([row("pending")]);
    // Preact runs effects by timers.
    for (const pause of [100, 100, 10 * 60_000]) context.mock.timers.tick(pause);
  }
  assert.ok(reloads > 5 && reloads <= 10, `${reloads}`);
});
