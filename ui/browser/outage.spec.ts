// What pages show while ClickHouse or the API does not answer.

import type { Page } from "@playwright/test";

import { PAGE_NAMES, PATHS } from "./dashboard.ts";
import { act, apiClient } from "./environment.ts";
import { expect, expectAccessible, test } from "./fixtures.ts";

// One API, which these tests stop in the end.
test.describe.configure({ mode: "serial" });

function outageAddress(outageUrl: string, path: string): string {
  return new URL(path, outageUrl).href;
}

async function signIn(page: Page, outageUrl: string, key: string): Promise<void> {
  await page.goto(`${outageAddress(outageUrl, PATHS.API)}#key=${key}`);
}

test("without copies of pictures every account and post has initials", async ({ dashboard, page, world }) => {
  // This API has no folder of pictures: it shows the platforms' URLs, which the page must not request.
  const api = apiClient({ baseUrl: world.outageUrl, key: world.keys.pictured });
  const { data } = await api.GET("/accounts");
  expect(data?.data.map(({ profile_pic_url }) => profile_pic_url)).toEqual(
    data?.data.map(({ profile_pic_url_original }) => profile_pic_url_original),
  );
  expect(data?.data[0]?.profile_pic_url).toMatch(/^http/);
  await signIn(page, world.outageUrl, world.keys.pictured);
  for (const [name, table] of [
    ["Overview", "Top content"],
    ["Content", "Content"],
    ["Accounts", "Accounts"],
  ] as const) {
    await dashboard.go(name);
    await expect(dashboard.table(table).rows.locator(".picture").first()).toHaveText(/^[A-Z0-9]{1,2}$/);
    await expect(dashboard.main.locator("img")).toHaveCount(0);
  }
});

test("without ClickHouse lists work and charts say why", async ({ dashboard, page, watch, world }) => {
  watch.allow(/status of 503/);
  await act("stop-clickhouse");
  await signIn(page, world.outageUrl, world.keys.write);
  await dashboard.go("Overview");
  await expect(dashboard.tryAgain.first()).toBeVisible();
  await expect(dashboard.main.getByRole("alert").first()).toContainText(
    /unavailable|down|not answer|ClickHouse|analytics/i,
  );
  await expect(dashboard.main.getByRole("alert").first()).toContainText(/request [\w-]+/i);
  await expectAccessible(page, "overview without ClickHouse");
  await dashboard.go("Accounts");
  await expect
    .poll(() => dashboard.table("Accounts").rows.count(), "accounts are listed without ClickHouse")
    .toBeGreaterThan(5);
  await page.goto(outageAddress(world.outageUrl, "/content?sort=-create_time"));
  await dashboard.settled();
  await expect
    .poll(() => dashboard.table("Content").rows.count(), "posts are listed without ClickHouse")
    .toBeGreaterThan(5);
  await dashboard.go("Overview");
  await expect(dashboard.tryAgain.first()).toBeVisible();

  await act("start-clickhouse");
  await expect(async () => {
    // News load figures, too, and take the button away.
    if ((await dashboard.tryAgain.count()) > 0) await dashboard.tryAgain.first().click({ timeout: 1_000 });
    await dashboard.settled();
    await expect(dashboard.tryAgain).toHaveCount(0, { timeout: 50 });
  }).toPass({ intervals: [20] });
  await expect(dashboard.main.getByRole("table").first()).toBeAttached();
});

test("without the API every page says that it did not answer", async ({ dashboard, page, watch, world }) => {
  // The stream of events ends, too.
  watch.allow(
    /ERR_(INCOMPLETE_CHUNKED_ENCODING|CONTENT_LENGTH_MISMATCH|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED|CONNECTION_[A-Z]+)/,
  );
  await signIn(page, world.outageUrl, world.keys.write);
  await dashboard.settled();
  await act("stop-api");
  for (const name of PAGE_NAMES.filter((name) => name !== "API")) {
    await dashboard.go(name);
    await expect(dashboard.main).toContainText("The server did not answer");
  }
});
