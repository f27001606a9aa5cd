// What people come for, in as few clicks as it takes.

import { readFileSync } from "node:fs";

import type { Page } from "@playwright/test";

import { compact, exact } from "../src/format.ts";
import { PATHS } from "./dashboard.ts";
import { apiClient } from "./environment.ts";
import { expect, test } from "./fixtures.ts";

/** Counts clicks from now on; choosing an option of a list takes two, keys take none. */
async function countClicks(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    const counted = window as unknown as { clicks: number };
    counted.clicks = 0;
    addEventListener("pointerdown", () => (counted.clicks += 1), true);
    addEventListener(
      "change",
      ({ target }) => (counted.clicks += target instanceof HTMLSelectElement ? 2 : 0),
      true,
    );
  });
  return () => page.evaluate(() => (window as unknown as { clicks: number }).clicks);
}

test("what grew most, which posts did it and whose they are is on the first page", async ({
  dashboard,
  page,
  world,
}) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  for (const name of ["Top content", "Top accounts", "Top creators"])
    await expect(dashboard.table(name).rows.first()).toBeVisible();
  const clicks = await countClicks(page);
  await dashboard.table("Top creators").rows.first().getByRole("link").first().click();
  await expect(page).toHaveURL(/\/creators\/./);
  await dashboard.settled();
  await expect(dashboard.table("Posts that gained most").rows.first()).toContainText("@");
  expect(await clicks()).toBe(1);
});

test("what is not updating, why and since when is one click away", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const clicks = await countClicks(page);
  await dashboard.main.getByRole("link", { name: /see why/ }).click();
  await expect(dashboard.heading).toHaveText("Tracking");
  await dashboard.settled();
  const rows = await dashboard.table("Not updating").read();
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) {
    expect(row.get("Why")?.text).toMatch(/\w+/);
    expect(row.get("Last read")?.text).toMatch(/now|ago|–/);
  }
  expect(await clicks()).toBe(1);
});

test("twenty accounts are added with a tag, a category and a creator", async ({ dashboard, page, world }) => {
  const bodies: { items: object[] }[] = [];
  await page.route(/\/v2\/accounts\/batch/, async (route) => {
    const body = route.request().postDataJSON() as { items: object[] };
    bodies.push(body);
    await route.fulfill({ json: { data: body.items.map((_, index) => ({ index, status: 409 })) } });
  });
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  const { data } = await api.GET("/creators", { params: { query: { limit: 1, order_by: "name" } } });
  const creator = data?.data[0];
  await dashboard.open(PATHS.Accounts, world.keys.write);
  const clicks = await countClicks(page);
  await dashboard.addAccounts.click();
  const { form, lines, submit, results } = dashboard.addForm;
  // The field has the focus: a paste is next.
  await expect(lines).toBeFocused();
  const names = Array.from({ length: 20 }, (_, number) => `@account${number}`);
  await lines.fill(names.join("\n"));
  await form.getByRole("combobox").fill(creator?.name ?? "");
  await form
    .getByRole("option", { name: creator?.name ?? "" })
    .first()
    .click();
  await form.getByLabel("Category").fill("coffee");
  await form.getByLabel("Tag", { exact: true }).fill("team");
  await form.getByLabel("Value of the tag").fill("north");
  await submit.click();
  await expect(results).toHaveCount(20);
  expect(await clicks()).toBeLessThanOrEqual(3);
  const fields = { category: "coffee", metadata: { team: "north" }, creator_id: creator?.id };
  expect(bodies.flatMap(({ items }) => items)).toEqual(
    names.map((username) => ({ platform: "instagram", username, ...fields })),
  );
});

test("three creators are compared with their figures side by side", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const clicks = await countClicks(page);
  await dashboard.go("Creators");
  const boxes = page.getByRole("checkbox", { name: /^Compare / });
  for (const position of [0, 1, 2]) await boxes.nth(position).check();
  await dashboard.settled();
  const views = async () =>
    (await dashboard.table("Figures of the comparison").read()).map((row) => row.get("Views")?.title);
  expect(await views()).toHaveLength(3);
  expect(await clicks()).toBeLessThanOrEqual(4);
  const ids = new URL(page.url()).searchParams.get("creators")?.split(",") ?? [];
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  const query = { period: "30d", include_today: false, creator_ids: ids } as const;
  const { data } = await api.GET("/creators/metrics", { params: { query: { ...query, creator_ids: ids } } });
  // Figures may come after the chart.
  await expect.poll(views).toEqual(ids.map((id) => exact(data?.data[id]?.views)));
  await dashboard.chooseRange("2025-01-01", "2025-12-31");
  await dashboard.settled();
  expect(await dashboard.table("Figures of the comparison").read()).toHaveLength(3);
});

test("a post is found by two words of its caption", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  await page.keyboard.press("/");
  await page.keyboard.type("likes are hidden");
  await expect(dashboard.palette.chosen).toContainText("likes are hidden here");
});

test("a post says whether it is unusual", async ({ dashboard, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  const { data } = await api.GET("/content/breakouts", { params: { query: { limit: 1 } } });
  const post = data?.data[0];
  await dashboard.open(`/content/${post?.id}`, world.keys.read);
  await expect(dashboard.heading).toHaveText(post?.description ?? "");
  await expect(dashboard.main).toContainText(
    new RegExp(
      `× what @${post?.account_username}’s posts usually have after \\d+ days: more than nine of ten`,
    ),
  );
  await expect(dashboard.main).toContainText(compact(post?.view_count));
});

test("last month beside the month before is one choice", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.read);
  const clicks = await countClicks(page);
  const [request] = await Promise.all([
    page.waitForRequest(/\/v2\/overview/),
    dashboard.choosePeriod("last_month"),
  ]);
  const query = new URL(request.url()).searchParams;
  expect(query.get("start_date")).toMatch(/-01$/);
  expect(query.get("end_date")?.slice(0, 7)).toBe(query.get("start_date")?.slice(0, 7));
  await expect(page).toHaveURL(/period=last_month/);
  await dashboard.settled();
  await expect(page.getByRole("checkbox", { name: "with today" })).toHaveCount(0);
  expect(await clicks()).toBeLessThanOrEqual(2);
});

test("accounts that lost followers come first", async ({ dashboard, page, world }) => {
  let lost: number[] = [];
  await page.route(/\/v2\/accounts\/top\?.*metric=followers/, async (route) => {
    const isLosses = route.request().url().includes("order_direction=asc");
    const response = await route.fetch();
    const { data, ...rest } = await response.json();
    const gains: number[] = data.map((_: object, position: number) =>
      isLosses ? position - 2 : 100 - position,
    );
    for (const [position, account] of data.entries()) account.metrics.followers = gains[position];
    if (isLosses) lost = gains;
    await route.fulfill({ response, json: { ...rest, data } });
  });
  await dashboard.open(PATHS.Accounts, world.keys.read);
  const clicks = await countClicks(page);
  const heading = dashboard.table("Accounts").headings.filter({ hasText: "New followers" });
  await heading.getByRole("button").click();
  await dashboard.settled();
  await heading.getByRole("button").click();
  await expect(heading).toHaveAttribute("aria-sort", "ascending");
  await dashboard.settled();
  const rows = await dashboard.table("Accounts").read();
  expect(rows.map((row) => row.get("New followers")?.title)).toEqual(lost.map(exact));
  expect(rows[0]?.get("New followers")?.text).toContain("−2");
  expect(await clicks()).toBe(2);
});

test("the whole list is saved as CSV", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Content, world.keys.read);
  const clicks = await countClicks(page);
  const save = await dashboard.openMenu("Posts", "Save all as CSV");
  const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
  expect(await clicks()).toBe(2);
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  const { data } = await api.GET("/content", { params: { query: { limit: 1, include_total: true } } });
  const lines = readFileSync(await download.path(), "utf8")
    .trimEnd()
    .split("\r\n");
  // Captions may have lines of their own.
  expect(lines.length - 1).toBeGreaterThanOrEqual(data?.pagination.total_count ?? Number.NaN);
  expect(lines.length - 1).toBeGreaterThan(await dashboard.table("Content").rows.count());
});

test("one creator’s figures are on every page, and in a link", async ({
  dashboard,
  page,
  context,
  world,
}) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  const { data: top } = await api.GET("/creators/top", { params: { query: { limit: 1 } } });
  const creator = top?.data[0];
  await dashboard.open(PATHS.Overview, world.keys.read);
  const clicks = await countClicks(page);
  await dashboard.main.getByRole("combobox", { name: "Creator", exact: true }).click();
  await dashboard.main.getByRole("combobox", { name: "Creator", exact: true }).fill(creator?.name ?? "");
  await dashboard.main
    .getByRole("option", { name: creator?.name ?? "" })
    .first()
    .click();
  await dashboard.settled();
  expect(await clicks()).toBeLessThanOrEqual(2);
  const query = { period: "30d", include_today: false, creator_id: creator?.id ?? "" } as const;
  const { data: overview } = await api.GET("/overview", { params: { query } });
  await expect(
    dashboard.tile("Views").locator(`[title="${exact(overview?.data.views.current)}"]`),
  ).toHaveCount(1);
  await expect(dashboard.main).toContainText(/\d+ of \d+ accounts/);
  const { data: accounts } = await api.GET("/accounts", {
    params: { query: { creator_id: [creator?.id ?? ""], limit: 200 } },
  });
  await dashboard.go("Accounts");
  await expect(dashboard.table("Accounts").rows).toHaveCount(accounts?.data.length ?? 0);
  await dashboard.go("Content");
  const { data: posts } = await api.GET("/content/top", {
    params: { query: { ...query, include_all: true, limit: 1 } },
  });
  await expect(dashboard.table("Content").rows.first().getByRole("link").first()).toHaveAttribute(
    "href",
    new RegExp(posts?.data[0]?.id ?? ""),
  );
  const colleague = await context.newPage();
  await colleague.goto(page.url());
  await expect(colleague.getByRole("button", { name: new RegExp(creator?.name ?? "") })).toBeVisible();
  // Links that count all accounts lead to all of them.
  await dashboard.go("Tracking");
  const active = dashboard.table("By status").rows.filter({ hasText: "Active" }).getByRole("link");
  const count = Number(await active.textContent());
  await active.click();
  await dashboard.settled();
  await expect(dashboard.table("Accounts").rows).toHaveCount(count);
});
