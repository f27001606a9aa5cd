// What a page does while it waits: for the server, for a limit, for a read.

import { PATHS } from "./dashboard.ts";
import { apiClient } from "./environment.ts";
import { expect, test } from "./fixtures.ts";

test("what the server did not answer is loaded once it does", async ({ dashboard, page, watch, world }) => {
  watch.allow(/ERR_FAILED/);
  let isDown = true;
  await page.route(/\/v2\/(overview|whoami|content\/top)/, (route) =>
    isDown ? route.abort("failed") : route.continue(),
  );
  await page.goto(`/#key=${world.keys.read}`);
  await expect(dashboard.main).toContainText("The server did not answer");
  isDown = false;
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await expect(dashboard.tryAgain).toHaveCount(0);
  await dashboard.settled();
  await expect(dashboard.table("Top content").rows.first()).toBeVisible();
});

test("a used up limit says when to try again", async ({ dashboard, page, watch, world }) => {
  watch.allow(/status of 429/);
  await page.clock.install();
  let isLimited = true;
  await page.route(/\/v2\/accounts\/top/, (route) =>
    isLimited
      ? route.fulfill({
          status: 429,
          headers: { "Retry-After": "50" },
          json: { detail: "too many requests" },
        })
      : route.continue(),
  );
  await dashboard.open(PATHS.Accounts, world.keys.read);
  const wait = dashboard.main.getByRole("button", { name: /Try again in [1-5]?\d\ss/ });
  await expect(wait).toBeDisabled();
  isLimited = false;
  await expect(async () => {
    await page.clock.runFor(60_000);
    await expect(dashboard.tryAgain).toBeEnabled({ timeout: 50 });
  }).toPass({ intervals: [20] });
  await dashboard.tryAgain.click();
  await expect(dashboard.table("Accounts").rows.first()).toBeVisible();
});

test("old numbers are faint while those of another range load", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.read);
  let send = () => {};
  const isSent = new Promise<void>((resolve) => (send = resolve));
  await page.route(/\/v2\/accounts\/top/, async (route) => {
    await isSent;
    await route.continue();
  });
  await dashboard.choosePeriod("90d");
  const table = dashboard.card("Accounts").getByRole("region");
  await expect(table).toHaveCSS("opacity", "0.6");
  send();
  await expect(table).toHaveCSS("opacity", "1");
});

test("a read that does not arrive can be requested again", async ({ dashboard, page, world }) => {
  await page.clock.install();
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  const { data } = await api.GET("/accounts", { params: { query: { limit: 1, status: ["active"] } } });
  const path = `/accounts/${data?.data[0]?.id}`;
  await page.route(new RegExp(`/v2${path}/refresh$`), (route) =>
    route.fulfill({ json: { data: [{ id: data?.data[0]?.id, status: "queued", refreshable_at: null }] } }),
  );
  await dashboard.open(path, world.keys.write);
  const button = page.getByRole("button", { name: "Refresh now" });
  await button.click();
  await expect(button).toBeDisabled();
  await expect(async () => {
    await page.clock.runFor(30_000);
    await expect(button).toBeEnabled({ timeout: 50 });
  }).toPass({ timeout: 50_000, intervals: [20] });
  await expect(dashboard.main).toContainText("It was not read yet");
});
