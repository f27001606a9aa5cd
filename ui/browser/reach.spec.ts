// Every row and every day is reached: by searching in the page, copying, printing, keyboard and touch.

import { type Dashboard, PATHS, Table } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, expectNoSidewaysScroll, test } from "./fixtures.ts";

const ROWS = 300;

/** Opens a list of many accounts. */
async function openLongList(dashboard: Dashboard, key: string): Promise<void> {
  const { page } = dashboard;
  await page.route(/\/v2\/accounts\/(metrics|timeseries)/, (route) =>
    route.fulfill({ status: 503, json: { detail: "not in this test" } }),
  );
  await page.route(/\/v2\/accounts\?.*order_by/, async (route) => {
    const response = await route.fetch();
    const {
      data: [account],
      ...rest
    } = await response.json();
    const data = Array.from({ length: ROWS }, (_, number) => ({
      ...account,
      id: `00000000-0000-4000-8000-00000000${String(number).padStart(4, "0")}`,
      username: `account${String(number).padStart(3, "0")}`,
      follower_count: ROWS - number,
    }));
    await route.fulfill({ response, json: { ...rest, data } });
  });
  await dashboard.open(`${PATHS.Accounts}?sort=username`, key);
}

test("every row of a long table is found, copied and printed", async ({ dashboard, page, watch, world }) => {
  watch.allow(/status of 503/);
  await openLongList(dashboard, world.keys.write);
  const { headings, rows } = dashboard.table("Accounts");
  const shown = rows.filter({ visible: true });
  const find = (text: string) =>
    page.evaluate((text) => {
      getSelection()?.removeAllRanges();
      return (window as unknown as { find: (text: string) => boolean }).find(text);
    }, text);
  for (const [first, last] of [
    ["@account000", "@account299"],
    ["@account299", "@account000"],
  ] as const) {
    await expect(shown.first()).toContainText(first);
    // Rows far from the screen follow.
    await expect(shown.last()).toContainText(last);
    await expect(shown).toHaveCount(ROWS);
    for (const text of ["@account000", "@account150", "@account299"]) expect(await find(text)).toBe(true);
    await headings.filter({ hasText: "Account" }).first().getByRole("button").click();
  }
  await expect(shown.last()).toContainText("@account299");
  await expect(shown).toHaveCount(ROWS);
  const copied = await page.evaluate(() => {
    getSelection()?.selectAllChildren(document.querySelector("main table") ?? document.body);
    return getSelection()?.toString() ?? "";
  });
  expect(copied.match(/@account\d{3}/g)).toHaveLength(ROWS);
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 720, height: 1_000 });
  await expect(shown).toHaveCount(ROWS);
  await expect(dashboard.navigation).toBeHidden();
  await expect(page.getByRole("combobox", { name: "Range" })).toBeHidden();
  await expect(page.getByRole("button", { name: "Add accounts" })).toBeHidden();
});

test("print cuts nothing off", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.write);
  await page.emulateMedia({ media: "print" });
  // A4 without margins, at 96 pixels an inch.
  await page.setViewportSize({ width: 720, height: 1_000 });
  for (const path of [PATHS.Overview, PATHS.Accounts, PATHS.Content, PATHS.Tracking]) {
    await dashboard.page.goto(path);
    await expect(dashboard.heading).toBeVisible();
    await expect(dashboard.main.locator("[aria-busy=true], .skeleton")).toHaveCount(0);
    await expectNoSidewaysScroll(page, `${path} in print`);
  }
});

async function postWithAges({ baseUrl, keys }: World): Promise<string> {
  const { data } = await apiClient({ baseUrl, key: keys.read }).GET("/content/breakouts", {
    params: { query: { limit: 1 } },
  });
  return `/content/${data?.data[0]?.id}`;
}

test("the chart of ages is read by keyboard", async ({ dashboard, page, world }) => {
  await dashboard.open(await postWithAges(world), world.keys.read);
  const slider = dashboard.card("Views by age").getByRole("slider");
  await slider.focus();
  await page.keyboard.press("Home");
  await expect(slider).toHaveAttribute("aria-valuetext", /^After 1 day: This post \d/);
  await page.keyboard.press("ArrowRight");
  await expect(dashboard.tooltip).toContainText("After 2 days");
  await expect(dashboard.tooltip).toContainText("Median");
});

test("the first key goes to the first day", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const slider = dashboard.main.getByRole("slider").first();
  await slider.focus();
  await page.keyboard.press("Home");
  await expect(slider).toHaveAttribute("aria-valuenow", "0");
});

test("the values that a finger taps stay when it is lifted", async ({ dashboard, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const slider = dashboard.main.getByRole("slider").first();
  const box = await slider.boundingBox();
  const at = { pointerType: "touch", clientX: (box?.x ?? 0) + 200, clientY: (box?.y ?? 0) + 100 };
  for (const type of ["pointerdown", "pointerup", "pointerleave"]) await slider.dispatchEvent(type, at);
  await expect(dashboard.tooltip).toBeVisible();
});

test("dragging over a chart chooses its days, and no text", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const rows = await (await dashboard.openChartTable()).read();
  const box = await dashboard.main.getByRole("slider").first().boundingBox();
  const [left, top] = [box?.x ?? 0, box?.y ?? 0];
  await page.mouse.move(left + 200, top + 240);
  await page.mouse.down();
  await page.mouse.move(left + 500, top + 250, { steps: 5 });
  expect(await page.evaluate(() => getSelection()?.toString())).toBe("");
  await page.mouse.up();
  await expect(page).toHaveURL(/period=custom&start_date=\d{4}-\d\d-\d\d&end_date=\d{4}-\d\d-\d\d/);
  await dashboard.settled();
  const fewer = await new Table(dashboard.main.getByRole("figure").first()).read();
  expect(fewer.length).toBeGreaterThan(2);
  expect(fewer.length).toBeLessThan(rows.length);
});

test("a day of a chart leads to its posts", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const slider = dashboard.main.getByRole("slider").first();
  await slider.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await expect(dashboard.heading).toHaveText("Content");
  const { searchParams } = new URL(page.url());
  expect(searchParams.get("posted_after")).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(searchParams.get("posted_before")).toBe(searchParams.get("posted_after"));
});

test("a slash searches while a checkbox has the focus", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  await page.getByRole("checkbox", { name: "with today" }).focus();
  await page.keyboard.press("/");
  await expect(dashboard.palette.input).toBeFocused();
});

test("the palette says that there is more than it shows", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  await page.keyboard.press("/");
  await page.keyboard.type("one a day");
  const { palette } = dashboard;
  await expect(palette.dialog.getByRole("status")).toContainText("The first 5 results");
  await palette.hits.filter({ hasText: "More in content" }).click();
  await expect(dashboard.heading).toHaveText("Content");
  await expect(page.getByRole("searchbox", { name: "Filter by caption" })).toHaveValue("one a day");
  await dashboard.settled();
  await expect(dashboard.table("Content").rows).toHaveCount(12);
});

test("failures lead to the accounts that fail for this reason", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Tracking, world.keys.read);
  const row = dashboard.table("Failures by reason").rows.first();
  const count = Number(await row.getByRole("link").textContent());
  await row.getByRole("link").click();
  await expect(page).toHaveURL(/failure=transient/);
  await dashboard.settled();
  await expect(dashboard.table("Accounts").rows).toHaveCount(count);
  await expect(page.getByRole("combobox", { name: "Why it fails" })).toHaveValue("transient");
});

test("days of which nothing was expected are drawn, under the name of their month", async ({
  dashboard,
  world,
}) => {
  const range = "period=custom&start_date=2024-10-30&end_date=2024-11-30";
  await dashboard.open(`${PATHS.Tracking}?${range}`, world.keys.read);
  const calendar = dashboard.card("Observed per day").getByRole("img");
  const days = calendar.locator("i");
  await expect(days).toHaveCount(32);
  const borders = await days.evaluateAll((days) => days.map((day) => getComputedStyle(day).borderTopStyle));
  expect(new Set(borders)).toEqual(new Set(["dashed"]));
  await expect(calendar.getByText("Nov", { exact: true })).toHaveCount(1);
  await expect(calendar.getByText("Oct", { exact: true })).toHaveCount(0);
});

test("a name that is written from right to left stands where others do", async ({
  dashboard,
  page,
  world,
}) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  const { data } = await api.GET("/creators", { params: { query: { limit: 1 } } });
  const path = `/creators/${data?.data[0]?.id}`;
  await page.route(new RegExp(`/v2${path}$`), async (route) => {
    const response = await route.fetch();
    const { data, ...rest } = await response.json();
    await route.fulfill({ response, json: { ...rest, data: { ...data, name: "نور الدين" } } });
  });
  await dashboard.open(path, world.keys.read);
  await expect(dashboard.heading).toHaveText("نور الدين");
  expect(await dashboard.heading.evaluate((heading) => getComputedStyle(heading).direction)).toBe("ltr");
});

test("a path without a page says so", async ({ dashboard, page, watch, world }) => {
  watch.allow(/status of 404/);
  await dashboard.open(PATHS.Overview, world.keys.read);
  const response = await page.goto("/foo");
  expect(response?.status()).toBe(404);
  await expect(dashboard.heading).toHaveText("No such page");
  const answer = await page.request.get("/foo", { headers: { Accept: "application/json" } });
  expect(answer.status()).toBe(404);
  expect(answer.headers()["content-type"]).toContain("json");
});
