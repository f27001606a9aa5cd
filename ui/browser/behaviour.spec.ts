// What every page does: by keyboard, while it loads, and with texts that are hostile.

import { type Dashboard, PATHS } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, expectNoSidewaysScroll, test } from "./fixtures.ts";

/** As long as the platforms permit. */
const HOSTILE =
  `<script>window.injected = true</script><img src=x onerror="window.injected = true"> ${"never-ending".repeat(200)}`.slice(
    0,
    2_200,
  );

async function firstPost({ baseUrl, keys }: World): Promise<string> {
  const { data } = await apiClient({ baseUrl, key: keys.read }).GET("/content", {
    params: { query: { limit: 1 } },
  });
  return `/content/${data?.data[0]?.id}`;
}

test("a caption is text, whatever it has in it", async ({ dashboard, page, world }) => {
  const post = await firstPost(world);
  await page.route(/\/v2\/content/, async (route) => {
    const response = await route.fetch();
    const { data, ...rest } = await response.json();
    const spoil = <Record extends object>(record: Record) => ({ ...record, description: HOSTILE });
    await route.fulfill({
      response,
      json: { ...rest, data: Array.isArray(data) ? data.map(spoil) : spoil(data) },
    });
  });
  await page.setViewportSize({ width: 360, height: 780 });
  for (const path of [PATHS.Overview, "/content?layout=grid", post]) {
    await dashboard.open(path, world.keys.read);
    await expect(dashboard.main.locator("[dir=auto]", { hasText: HOSTILE.slice(0, 60) }).first()).toHaveText(
      HOSTILE,
    );
    await expectNoSidewaysScroll(page, path);
    expect(await page.evaluate(() => "injected" in window || document.scripts.length !== 2)).toBe(false);
  }
});

test("leaving a page aborts its requests", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.API, world.keys.read);
  await page.route("**/v2/accounts/top**", () => {});
  const [request] = await Promise.all([
    page.waitForRequest("**/v2/accounts/top**"),
    dashboard.link("Accounts").click(),
  ]);
  const [failed] = await Promise.all([page.waitForEvent("requestfailed"), dashboard.link("API").click()]);
  expect(failed).toBe(request);
  expect(failed.failure()?.errorText).toBe("net::ERR_ABORTED");
});

/** Bytes of the answers since the last call, and of their bodies. */
function transferred(page: Dashboard["page"]) {
  return page.evaluate(() => {
    const entries = performance
      .getEntriesByType("resource")
      .filter(({ name }) => name.includes("/v2/")) as PerformanceResourceTiming[];
    performance.clearResourceTimings();
    return entries.map(({ name, transferSize, encodedBodySize }) => ({
      name,
      isUnchanged: encodedBodySize > 0 && transferSize <= 300,
    }));
  });
}

test("what a page shows again is not sent again", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.read);
  await dashboard.go("API");
  await transferred(page);
  await dashboard.go("Accounts");
  const again = await transferred(page);
  expect(again.length).toBeGreaterThanOrEqual(2);
  expect(again.filter(({ isUnchanged }) => !isUnchanged)).toEqual([]);
});

test("a chart is read by keyboard", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const rows = await (await dashboard.openChartTable()).read();
  const slider = dashboard.main.getByRole("slider").first();
  await slider.focus();
  const at = async (key: string, row: number) => {
    await page.keyboard.press(key);
    const [day, ...values] = [...(rows.at(row)?.values() ?? [])].map(({ text }) => text);
    for (const text of [day, ...values])
      await expect(slider).toHaveAttribute("aria-valuetext", new RegExp(`(^|\\s)${text}(:|,|$)`));
    await expect(dashboard.tooltip).toContainText(values[0] ?? "");
  };
  await at("ArrowLeft", -1);
  await at("ArrowLeft", -2);
  await at("PageUp", -9);
  await at("Home", 0);
  await page.keyboard.press("Escape");
  await expect(dashboard.tooltip).toHaveCount(0);
});

test("the content is reached by one key", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Tracking, world.keys.read);
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(dashboard.main).toBeFocused();
});

test("a menu takes the next key", async ({ dashboard, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.read);
  const more = dashboard.table("Accounts").rows.first().getByRole("button", { name: "More: " });
  const isOpenBeforePaint = await more.evaluate(async (button: HTMLElement) => {
    button.click();
    await Promise.resolve();
    return document.querySelector("dialog")?.open;
  });
  expect(isOpenBeforePaint).toBe(true);
});

test("a menu stays after a scroll that ended before, and closes with the next", async ({
  dashboard,
  page,
  world,
}) => {
  await page.setViewportSize({ width: 1280, height: 500 });
  await dashboard.open(PATHS.Accounts, world.keys.read);
  const more = dashboard.table("Accounts").rows.last().getByRole("button", { name: "More: " });
  const isOpenAfterEvent = await more.evaluate(async (button: HTMLElement) => {
    const isScrolled = new Promise((resolve) => addEventListener("scroll", resolve, { once: true }));
    button.scrollIntoView({ block: "center" });
    button.click();
    await isScrolled;
    await new Promise((resolve) => setTimeout(resolve));
    return document.querySelector("dialog")?.open;
  });
  expect(isOpenAfterEvent).toBe(true);
  await page.evaluate(() => scrollBy(0, -50));
  await expect(dashboard.dialog).toHaveCount(0);
});

test("what is typed or opened at once stays", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const start = page.getByLabel("First day (UTC)");
  await page.getByRole("combobox", { name: "Range" }).evaluate(async (range: HTMLSelectElement) => {
    range.value = "custom";
    range.dispatchEvent(new Event("change", { bubbles: true }));
    await Promise.resolve();
    const first = document.querySelector<HTMLInputElement>("[aria-label^='First day']");
    if (!first) throw new Error("there is no field for the first day");
    first.focus();
    first.value = "2025-10-05";
    first.dispatchEvent(new Event("input", { bubbles: true }));
    // Until what waits for the page to be painted is done.
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => setTimeout(resolve))));
  });
  await expect(start).toHaveValue("2025-10-05");
  await expect(page.getByRole("grid")).toBeHidden();
});

test("only the page that is shown of many accounts is requested", async ({ dashboard, page, world }) => {
  const [lists, limits]: [string[], number[]] = [[], []];
  await page.route(/\/v2\/accounts\/top/, async (route) => {
    lists.push(route.request().url());
    const response = await route.fetch();
    const { pagination, ...rest } = await response.json();
    await route.fulfill({
      response,
      json: { ...rest, pagination: { ...pagination, next_cursor: "more", has_next: true } },
    });
  });
  page.on("request", (request) => limits.push(Number(new URL(request.url()).searchParams.get("limit") ?? 0)));
  await dashboard.open(PATHS.Accounts, world.keys.read);
  await expect(dashboard.showMore).toBeVisible();
  expect(lists).toHaveLength(1);
  expect(Math.max(...limits)).toBeLessThanOrEqual(200);
});

test("a page of a list that failed is tried again", async ({ dashboard, page, watch, world }) => {
  watch.allow(/status of 503/);
  let attempts = 0;
  await page.route(/\/v2\/accounts\/top/, async (route) => {
    const url = new URL(route.request().url());
    const isMore = url.searchParams.has("cursor");
    if (isMore) attempts += 1;
    if (isMore && attempts === 1)
      return route.fulfill({ status: 503, json: { detail: "down for a moment" } });
    url.searchParams.delete("cursor");
    const response = await route.fetch({ url: url.href });
    const { data, pagination, ...rest } = await response.json();
    const rows = isMore ? data.map((account: object) => ({ ...account, id: crypto.randomUUID() })) : data;
    await route.fulfill({
      response,
      json: { ...rest, data: rows, pagination: { ...pagination, next_cursor: isMore ? null : "more" } },
    });
  });
  await dashboard.open(PATHS.Accounts, world.keys.read);
  const { rows } = dashboard.table("Accounts");
  const count = await rows.count();
  await dashboard.showMore.click();
  await dashboard.tryAgain.click();
  await expect(rows).toHaveCount(2 * count);
  expect(attempts).toBe(2);
});

test("a space at the end of a filter survives a pause", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Content, world.keys.read);
  const filter = page.getByRole("searchbox", { name: "Filter by caption" });
  await filter.pressSequentially("of ");
  await expect(page).toHaveURL(/[?&]q=of(&|$)/);
  await filter.pressSequentially("the");
  await expect(page).toHaveURL(/[?&]q=of(\+|%20)the(&|$)/);
  await expect(filter).toHaveValue("of the");
});

test("saving settings leaves what someone else changed meanwhile", async ({ dashboard, page, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  const account_id =
    (await api.GET("/accounts", { params: { query: { limit: 1 } } })).data?.data[0]?.id ?? "";
  const { data: stored } = await api.GET("/accounts/{account_id}", { params: { path: { account_id } } });
  const changes: unknown[] = [];
  let category = stored?.data.category;
  await page.route(new RegExp(`/v2/accounts/${account_id}$`), async (route) => {
    if (route.request().method() === "PATCH") changes.push(route.request().postDataJSON());
    await route.fulfill({ json: { ...stored, data: { ...stored?.data, category } } });
  });
  await dashboard.open(`/accounts/${account_id}`, world.keys.write);
  await expect(page.getByLabel("Category")).toHaveValue(category ?? "");
  category = "of someone else";
  await page.getByRole("button", { name: "Pause tracking" }).click();
  await expect(page.getByLabel("Category")).toHaveValue(category);
  await page.getByLabel("Hours between reads").fill("48");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(() => changes).toEqual([{ is_active: false }, { scrape_interval_hours: 48 }]);
});
