// What pages are about: one tag, category or creator on all of them, and what is unusual.

import { exact, times } from "../src/format.ts";
import { PATHS } from "./dashboard.ts";
import { apiClient } from "./environment.ts";
import { expect, expectAccessible, expectNoSidewaysScroll, test } from "./fixtures.ts";

test("a tag is chosen once, and filters every page", async ({ dashboard, page, world }) => {
  // The figures of other tests stay as they are.
  const key = world.keys.pictured;
  const api = apiClient({ baseUrl: world.baseUrl, key });
  const value = crypto.randomUUID();
  const { data: top } = await api.GET("/accounts/top", { params: { query: { limit: 1 } } });
  const account = top?.data[0];
  const body = { ids: [account?.id ?? ""], set: { metadata: { client: value } } };
  await api.PATCH("/accounts/batch", { body });
  await dashboard.open(PATHS.Overview, key);
  await page.getByRole("combobox", { name: "Tag" }).fill(value);
  await page.getByRole("option", { name: `client: ${value}` }).click();
  await expect(page).toHaveURL(new RegExp(`metadata\\.client=${value}`));
  await dashboard.settled();
  const query = { period: "30d", include_today: false, metadata: { "metadata.client": value } } as const;
  const { data: overview } = await api.GET("/overview", { params: { query } });
  const views = dashboard.tile("Views").locator(`[title="${exact(overview?.data.views.current)}"]`);
  await expect(views).toHaveCount(1);
  await expect(dashboard.table("Top accounts").rows).toHaveCount(1);
  await dashboard.go("Accounts");
  await expect(dashboard.table("Accounts").rows).toHaveCount(1);
  await expect(dashboard.table("Accounts").rows).toContainText(account?.username ?? "");
  for (const [name, path] of [
    ["Content", "/content/top"],
    ["Creators", "/creators/top"],
    ["Tracking", "/accounts"],
  ] as const) {
    const [request] = await Promise.all([
      page.waitForRequest((request) => new URL(request.url()).pathname === `/v2${path}`),
      dashboard.go(name),
    ]);
    expect(new URL(request.url()).searchParams.get("metadata.client"), name).toBe(value);
  }
  await page.getByRole("button", { name: `client: ${value}` }).click();
  await expect(page).not.toHaveURL(/metadata/);
  await page.setViewportSize({ width: 360, height: 780 });
  await expectNoSidewaysScroll(page, "filters, 360 px");
  const tags = page.getByRole("combobox", { name: "Tag" });
  await expect(tags).toBeHidden();
  await page.getByRole("button", { name: "Filters", exact: true }).click();
  await expect(tags).toBeVisible();
});

test("creators are ranked by platform, and to their end", async ({ dashboard, page, world }) => {
  const cursors: (string | null)[] = [];
  await page.route(/\/v2\/creators\/top/, async (route) => {
    const url = new URL(route.request().url());
    cursors.push(url.searchParams.get("cursor"));
    expect(url.searchParams.get("platform")).toBe("tiktok");
    url.searchParams.delete("cursor");
    const response = await route.fetch({ url: url.href });
    const { data, pagination, ...rest } = await response.json();
    const isFirst = cursors.length === 1;
    const rows = isFirst ? data : data.map((row: object) => ({ ...row, id: crypto.randomUUID() }));
    const next = { ...pagination, next_cursor: isFirst ? "more" : null };
    await route.fulfill({ response, json: { ...rest, data: rows, pagination: next } });
  });
  await dashboard.open(`${PATHS.Creators}?platform=tiktok`, world.keys.read);
  const { rows } = dashboard.table("Creators");
  const count = await rows.count();
  await dashboard.showMore.click();
  await expect(rows).toHaveCount(2 * count);
  expect(cursors).toEqual([null, "more"]);
});

test("posts are ordered by how much better than usual they did", async ({ dashboard, page, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  await dashboard.open(PATHS.Content, world.keys.read);
  const [request] = await Promise.all([
    page.waitForRequest(/\/content\/breakouts/),
    page.getByRole("combobox", { name: "Sort" }).selectOption("-multiple"),
  ]);
  await dashboard.settled();
  const posted_after = new URL(request.url()).searchParams.get("posted_after") ?? "";
  const query = { min_multiple: 1, limit: 100, posted_after };
  const { data } = await api.GET("/content/breakouts", { params: { query } });
  const { rows: shown } = dashboard.table("Content");
  await expect(shown).toHaveCount(Math.min(50, data?.data.length ?? 0));
  while (await dashboard.showMore.isVisible()) {
    const before = await shown.count();
    await dashboard.showMore.click();
    await expect.poll(() => shown.count()).toBeGreaterThan(before);
    await dashboard.settled();
  }
  expect(await shown.count()).toBeGreaterThan(0);
  const multiples = async () =>
    (await dashboard.table("Content").read()).slice(0, 100).map((row) => row.get("× usual")?.text);
  // Rows far from the screen follow.
  await expect.poll(multiples).toEqual(data?.data.map((post) => times(post.multiple)));
  const gained = async () => (await dashboard.table("Content").read())[0]?.get("Views gained")?.text;
  await expect.poll(gained).toMatch(/\d/);
  await page.getByRole("combobox", { name: "At least" }).selectOption("10");
  await expect(page).toHaveURL(/min_multiple=10/);
  await dashboard.settled();
  const few = await dashboard.table("Content").read();
  expect(few.length).toBe(data?.data.filter(({ multiple }) => multiple >= 10).length);
  await page.getByRole("searchbox", { name: "Filter by caption" }).fill("nothing has this");
  await expect(dashboard.card("Posts")).toContainText("the filters by caption do not apply");
});

test("columns that a person hides stay hidden", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Content, world.keys.read);
  const { headings } = dashboard.table("Content");
  const comments = headings.filter({ hasText: "Comments gained" });
  await expect(comments).toHaveCount(1);
  await page.getByText("Columns", { exact: true }).click();
  await page.getByRole("checkbox", { name: "Comments gained" }).uncheck();
  await expect(comments).toHaveCount(0);
  await page.keyboard.press("Escape");
  await expect(page.getByRole("group", { name: "Columns" })).toBeHidden();
  await page.reload();
  await dashboard.settled();
  await expect(comments).toHaveCount(0);
  await expect(headings.filter({ hasText: "Views gained" })).toHaveCount(1);
});

test("the head of a table stays on screen", async ({ dashboard, page, world }) => {
  await page.setViewportSize({ width: 1280, height: 500 });
  await dashboard.open(PATHS.Content, world.keys.read);
  const { headings, rows } = dashboard.table("Content");
  await rows.nth(12).scrollIntoViewIfNeeded();
  await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(300);
  await expect
    .poll(() => headings.first().evaluate((heading) => Math.round(heading.getBoundingClientRect().top)))
    .toBe(0);
});

test("a counter that was never known is no zero in the table of posts", async ({
  dashboard,
  page,
  world,
}) => {
  await dashboard.open(`${PATHS.Content}?q=hidden&sort=-create_time`, world.keys.read);
  const likes = async () => (await dashboard.table("Content").read())[0]?.get("Likes gained")?.text;
  // Gains of posts in this order come after the rows.
  await expect.poll(likes).toBe("–");
  await page.route(/\/v2\/content\/top/, async (route) => {
    const response = await route.fetch();
    const { data, ...rest } = await response.json();
    const posts = data.map((post: object) => ({ ...post, unknown_counters: ["like_count"] }));
    await route.fulfill({ response, json: { ...rest, data: posts } });
  });
  await dashboard.open(`${PATHS.Content}?q=hidden`, world.keys.read);
  expect(await likes()).toBe("–");
  expect((await dashboard.table("Content").read())[0]?.get("Views gained")?.text).not.toBe("–");
});

test("posts stand on the days on which they were posted", async ({ dashboard, page, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  await dashboard.open(PATHS.Content, world.keys.read);
  const { data: top } = await api.GET("/overview", { params: { query: { include_today: false } } });
  await page.getByRole("button", { name: "Calendar" }).click();
  await expect(page).toHaveURL(/layout=calendar/);
  await dashboard.settled();
  await expect(page.getByRole("button", { name: "Calendar" })).toBeFocused();
  const card = dashboard.card("Posts by day");
  const counts = await card.locator("td b").allTextContents();
  const total = counts.reduce((sum, count) => sum + Number(count), 0);
  expect(total).toBe(top?.data.new_posts.current);
  await expectAccessible(page, "the calendar of posts");
  await card
    .getByTitle(/^\d+ posts? on /)
    .first()
    .click();
  await expect(page).toHaveURL(/posted_after=(\d{4}-\d\d-\d\d)&posted_before=\1/);
  await dashboard.settled();
  await expect(dashboard.table("Content").rows).toHaveCount(Number(counts[0]));
  await dashboard.open(`${PATHS.Content}?layout=calendar&period=731d`, world.keys.read);
  await expect(dashboard.main).toContainText("at most 92 days");
  await page.setViewportSize({ width: 360, height: 780 });
  await dashboard.open(`${PATHS.Content}?layout=calendar`, world.keys.read);
  await expectNoSidewaysScroll(page, "the calendar of posts, 360 px");
});
