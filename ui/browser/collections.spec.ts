// Collections: made by a rule and by hand, reported on, paid, and shown to a client.

import type { Page } from "@playwright/test";

import type { paths } from "../src/api/schema.d.ts";
import { compact, exact, money } from "../src/format.ts";
import { type Dashboard, PATHS } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, expectAccessible, expectNoSidewaysScroll, test } from "./fixtures.ts";

type NewCollection = paths["/collections"]["post"]["requestBody"]["content"]["application/json"];

function clientOf({ baseUrl, keys }: World) {
  return apiClient({ baseUrl, key: keys.write });
}

/** Tests run at the same time in one organization, whose names are unique. */
async function create(
  world: World,
  name: string,
  fields: Omit<NewCollection, "name">,
): Promise<{ id: string; name: string }> {
  const unique = `${name} ${crypto.randomUUID().slice(0, 8)}`;
  const { data, error } = await clientOf(world).POST("/collections", { body: { name: unique, ...fields } });
  if (!data) throw new Error(JSON.stringify(error));
  return { id: data.data.id, name: unique };
}

async function overviewOf(world: World, collection_id: string) {
  const params = { path: { collection_id }, query: { period: "30d" as const, include_today: false } };
  const { data } = await clientOf(world).GET("/collections/{collection_id}/overview", { params });
  if (!data) throw new Error("the collection has no overview");
  return data.data;
}

/** The pages of a collection in two forms. */
async function expectReadable(dashboard: Dashboard, what: string): Promise<void> {
  const { page } = dashboard;
  await expectAccessible(page, what);
  await page.setViewportSize({ width: 360, height: 900 });
  await page.emulateMedia({ colorScheme: "dark" });
  await expectNoSidewaysScroll(page, `${what}, 360 px`);
  await expectAccessible(page, `${what}, 360 px, dark`, "looks");
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

test("without collections, the page says what they are for", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Collections, world.keys.empty);
  await expect(dashboard.main).toContainText("A collection puts posts together");
  await expectReadable(dashboard, "no collections");
  await dashboard.main.getByRole("link", { name: "New collection" }).last().click();
  await expect(dashboard.heading).toHaveText("New collection");
  await page.goBack();
  await expect(dashboard.heading).toHaveText("Collections");
});

test("a collection is created by a rule whose posts are counted before", async ({
  dashboard,
  watch,
  world,
}) => {
  watch.allow(/status of 422/);
  await dashboard.open(`${PATHS.Collections}?edit=true`, world.keys.write);
  const { main } = dashboard;
  const name = `Long words ${crypto.randomUUID().slice(0, 8)}`;
  await main.getByLabel("Name", { exact: true }).fill(name);
  const preview = dashboard.card("Posts that the rule finds");
  const count = async (q?: string) => {
    const query = { limit: 1, include_total: true, ...(q ? { q } : {}) };
    const { data } = await clientOf(world).GET("/content", { params: { query } });
    return exact(data?.pagination.total_count ?? 0);
  };
  await expect(preview.getByRole("status")).toContainText(`${await count()} posts, which are all`);
  await main.getByLabel("Caption contains").fill("word without end");
  await expect(preview.getByRole("status")).toHaveText(/^1 post$/);
  await expect(preview.getByRole("listitem")).toContainText("Donaudampf");
  await main.getByLabel("Calculate payouts").check();
  await main.getByLabel("Currency").fill("EUX");
  await main.getByLabel("For each thousand views").fill("4.50");
  await expectReadable(dashboard, "the editor");
  await main.getByRole("button", { name: "Create" }).click();
  await expect(main.getByText("Must be an ISO 4217 code", { exact: false })).toBeVisible();
  await expect(main.getByLabel("Currency")).toHaveAttribute("aria-invalid", "true");
  await expect(main.getByRole("alert")).toHaveText("Not saved: see the marked fields.");
  await expectAccessible(dashboard.page, "the editor with a problem");
  await main.getByLabel("Currency").fill("EUR");
  await main.getByRole("button", { name: "Create" }).click();
  await expect(dashboard.heading).toHaveText(name);
  await dashboard.settled();
  await expect(main).toContainText("Posts: caption has “word without end”");
  await expect(dashboard.table("Posts").rows).toHaveCount(1);
});

test("a report shows what the API answers", async ({ dashboard, page, world }) => {
  const payout = { currency: "EUR", per_thousand_views: "4.50" };
  const { id } = await create(world, "Everything", { rule: {}, payout });
  const urls: string[] = [];
  page.on("request", (request) => {
    const { href, pathname } = new URL(request.url());
    if (pathname.startsWith("/v2/") && !["/v2/whoami", "/v2/events/stream"].includes(pathname))
      urls.push(href);
  });
  await dashboard.open(`/collections/${id}`, world.keys.write);
  expect(urls.length + 1, urls.join("\n")).toBeLessThanOrEqual(8);
  const [overview, payouts] = await Promise.all([
    overviewOf(world, id),
    clientOf(world).GET("/collections/{collection_id}/payouts", {
      params: { path: { collection_id: id }, query: { period: "30d", include_today: false } },
    }),
  ]);
  const { totals, views } = overview;
  await expect(dashboard.fact("Posts")).toHaveText(compact(totals.videos));
  await expect(dashboard.fact("Views").getByTitle(exact(totals.views))).toBeVisible();
  const tile = dashboard.card("In this period").getByRole("button", { name: /^Views/ });
  await expect(tile.getByTitle(exact(views.current))).toBeVisible();
  const meta = payouts.data?.meta;
  await expect(dashboard.card("Payouts")).toContainText(money(meta?.total ?? "", "EUR"));
  await expect(dashboard.table("Payouts").rows).toHaveCount(payouts.data?.data.length ?? 0);
  await expect(dashboard.table("Accounts").rows).toHaveCount(totals.accounts);
  const button = await dashboard.openMenu("Payouts", "Save as CSV");
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  expect(download.suggestedFilename()).toBe("payouts.csv");
  // What is below is loaded when it comes near the screen, where the menu may have been.
  const breakoutsOfWeek = page.waitForResponse(/\/v2\/content\/breakouts\?.*age_days=1(&|$)/);
  await dashboard.choosePeriod("7d");
  await expect(page).toHaveURL(/period=7d/);
  await dashboard.card("Breakouts").scrollIntoViewIfNeeded();
  const response = await breakoutsOfWeek;
  expect(new URL(response.url()).searchParams.get("collection_id")).toBe(id);
  const { data: breakouts } = (await response.json()) as { data: object[] };
  await expect(dashboard.table("Breakouts").rows).toHaveCount(breakouts.length);
  await dashboard.card("Hashtags").scrollIntoViewIfNeeded();
  await expect(dashboard.table("Hashtags").rows.first()).toContainText("#");
  await dashboard.settled();
  await expectReadable(dashboard, "a report");
});

test("a report is made for paper", async ({ dashboard, page, world }) => {
  const { id } = await create(world, "Paper", { rule: {} });
  await dashboard.open(`/collections/${id}`, world.keys.write);
  await page.emulateMedia({ media: "print" });
  // What A4 leaves between its margins.
  await page.setViewportSize({ width: 703, height: 1_000 });
  await expect(dashboard.navigation).toBeHidden();
  for (const name of ["Print", "Edit", "Share…", "⋯"])
    await expect(dashboard.main.getByText(name, { exact: true }).filter({ visible: true })).toHaveCount(0);
  await expect(dashboard.main.getByRole("figure").first()).toBeVisible();
  await expectNoSidewaysScroll(page, "a report on paper");
  expect((await page.pdf({ preferCSSPageSize: true })).length).toBeGreaterThan(10_000);
});

test("a collection is changed and deleted", async ({ dashboard, page, world }) => {
  const { id, name } = await create(world, "Changed", { rule: { q: "tracked alone" } });
  await dashboard.open(`/collections/${id}`, world.keys.write);
  const { main } = dashboard;
  await main.getByRole("link", { name: "Edit", exact: true }).click();
  await expect(dashboard.heading).toHaveText(`Edit ${name}`);
  await main.getByLabel("Description").fill("Chosen by colleagues");
  await main.getByLabel("By hand only").check();
  await main.getByRole("button", { name: "Save" }).click();
  await expect(main).toContainText("Chosen by colleagues");
  await expect(main).toContainText("Posts: chosen by hand");
  await main.getByRole("button", { name: "Delete…" }).click();
  await expect(dashboard.dialog).toContainText(`Delete ${name}?`);
  await dashboard.dialog.getByRole("button", { name: "Delete" }).click();
  await expect(page).toHaveURL(PATHS.Collections);
  const { response } = await clientOf(world).GET("/collections/{collection_id}", {
    params: { path: { collection_id: id } },
  });
  expect(response.status).toBe(404);
});

test("posts are put into a collection and kept out of it", async ({ dashboard, watch, world }) => {
  // A post without a mark has none to get.
  watch.allow(/status of 404/);
  const { id, name } = await create(world, "By hand", { rule: null });
  await dashboard.open(PATHS.Content, world.keys.write);
  const { main, dialog } = dashboard;
  const { rows } = dashboard.table("Content");
  for (const position of [0, 1]) await rows.nth(position).getByRole("checkbox").check();
  await main.getByRole("button", { name: "Add 2 to a collection…" }).click();
  await dialog.getByRole("combobox").fill(name);
  await dialog.getByRole("option", { name }).click();
  await dialog.getByRole("button", { name: /^Include/ }).click();
  await expect(dialog.getByRole("status")).toHaveText("2 posts included.");
  await expectAccessible(dashboard.page, "marks");
  await dialog.getByRole("button", { name: "Close" }).click();

  await rows.first().getByRole("link").click();
  await main.getByRole("button", { name: "Add to a collection…" }).click();
  await dialog.getByRole("combobox").fill(name);
  await dialog.getByRole("option", { name }).click();
  await expect(dialog.getByRole("button", { name: /^Include/ })).toHaveAttribute("aria-pressed", "true");
  await dialog.getByRole("button", { name: /^Exclude/ }).click();
  await expect(dialog.getByRole("status")).toHaveText("1 post excluded.");
  await dialog.getByRole("button", { name: "Close" }).click();

  await dashboard.open(`/collections/${id}`, world.keys.write);
  await expect(main).toContainText("1 included by hand · 1 excluded by hand");
  await expect(dashboard.table("Posts").rows).toHaveCount(1);
  await dashboard
    .table("Posts")
    .rows.first()
    .getByRole("button", { name: /^Include or exclude/ })
    .click();
  await dialog.getByRole("button", { name: /^As the rule says/ }).click();
  await expect(dialog.getByRole("status")).toHaveText("1 post left to the rule.");
  await dialog.getByRole("button", { name: "Close" }).click();
  await expect(dashboard.card("Posts")).toContainText("No post is in this collection.");
  await main.getByRole("link", { name: "Edit", exact: true }).click();
  await dashboard.card("Excluded by hand").getByRole("button", { name: "Show" }).click();
  await dashboard.card("Excluded by hand").getByRole("button", { name: /^Undo/ }).click();
  await expect(dashboard.card("Excluded by hand")).toContainText("No post is excluded by hand.");
});

test("content is filtered by a collection", async ({ dashboard, page, world }) => {
  const { id, name } = await create(world, "Filter", { rule: { q: "tracked alone" } });
  await dashboard.open(PATHS.Content, world.keys.write);
  await dashboard.main.getByText("More filters", { exact: true }).click();
  await dashboard.main.getByRole("combobox", { name: "Collection" }).fill(name);
  await dashboard.main.getByRole("option", { name }).click();
  await expect(page).toHaveURL(new RegExp(`collection_id=${id}`));
  await expect(dashboard.table("Content").rows).toHaveCount(1);
  const save = await dashboard.openMenu("Posts", "Save all as CSV");
  const [request] = await Promise.all([page.waitForRequest("**/export/content.csv?**"), save.click()]);
  expect(request.url()).toContain(`collection_id=${id}`);
});

/** Makes a link in the dialog, and returns its path. */
async function makeLink(dashboard: Dashboard): Promise<string> {
  const { dialog, main } = dashboard;
  await main.getByRole("button", { name: "Share…" }).click();
  await expect(dialog).toContainText("Nobody outside sees this report.");
  await dialog.getByLabel("Title of the report").fill("For Acme");
  await dialog.getByLabel("Period shown first").selectOption("90d");
  await dialog.getByLabel("Creators").uncheck();
  await expectAccessible(dashboard.page, "sharing");
  await dialog.getByRole("button", { name: "Make a link" }).click();
  const { pathname, hash } = new URL(await dialog.getByLabel("Link", { exact: true }).inputValue());
  expect(hash).toMatch(/^#tds_/);
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect(dialog.getByRole("row").filter({ hasText: "For Acme" })).toContainText("90 days");
  await expect(dialog).not.toContainText(hash.slice(1));
  return pathname + hash;
}

/** The paths of all requests of a page. */
function pathsOf(page: Page): Set<string> {
  const paths = new Set<string>();
  page.on("request", (request) => paths.add(new URL(request.url()).pathname));
  return paths;
}

test("a client sees the report by its link until it is revoked", async ({
  context,
  dashboard,
  page,
  watch,
  world,
}) => {
  watch.allow(/status of 401/);
  const { id, name } = await create(world, "Shared", { rule: {}, description: "our own notes" });
  await dashboard.open(`/collections/${id}`, world.keys.write);
  const link = await makeLink(dashboard);
  const clientPage = await context.newPage();
  const paths = pathsOf(clientPage);
  await clientPage.goto(link);
  const main = clientPage.getByRole("main");
  await expect(main.getByRole("heading", { level: 1 })).toHaveText("For Acme");
  await expect(main.locator("[aria-busy=true], .skeleton")).toHaveCount(0);
  await expect(clientPage).toHaveTitle(/For Acme/);
  expect(new URL(clientPage.url()).searchParams.get("period")).toBe("90d");
  const { totals } = await overviewOf(world, id);
  await expect(main.getByTitle(exact(totals.views)).first()).toBeVisible();
  for (const text of [name, "our own notes"]) await expect(main).not.toContainText(text);
  await expect(main.getByRole("region", { name: "Creators" })).toHaveCount(0);
  await expect(clientPage.getByRole("navigation")).toHaveCount(0);
  await expect(main.locator('a[href^="/"]')).toHaveCount(0);
  await main.getByRole("combobox", { name: "Range" }).selectOption("7d");
  await expect(clientPage).toHaveURL(new RegExp(`period=7d${link.slice(link.indexOf("#"))}`));
  await expect(main.locator("[aria-busy=true], .skeleton")).toHaveCount(0);
  const api = [...paths].filter((path) => !path.startsWith("/assets/") && !path.startsWith("/media/"));
  expect(api.toSorted()).toEqual([
    "/shared",
    "/v2/shared",
    "/v2/shared/accounts",
    "/v2/shared/content",
    "/v2/shared/overview",
    "/v2/shared/timeseries",
  ]);
  await expectReadable({ page: clientPage } as Dashboard, "a client's report");
  await clientPage.reload();
  await expect(main.getByRole("heading", { level: 1 })).toHaveText("For Acme");

  const { dialog } = dashboard;
  await page.bringToFront();
  await dialog.getByRole("button", { name: "Revoke For Acme" }).click();
  await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
  await expect(dialog).toContainText("Nobody outside sees this report.");
  // Within 5 s, on a busy machine a little more.
  await expect(main).toContainText("expired, or was revoked", { timeout: 8_000 });
  await expect(main).not.toContainText("For Acme");
  await clientPage.reload();
  await expect(main).toContainText("expired, or was revoked");
  await expectAccessible(clientPage, "an ended report");
});

test("a link without its token says so", async ({ page }) => {
  await page.goto("/shared");
  await expect(page.getByRole("main")).toContainText("The link is not complete");
});

test("a key that may only read sees reports and changes none", async ({ dashboard, world }) => {
  const { id } = await create(world, "Read", { rule: {} });
  await dashboard.open(`/collections/${id}`, world.keys.read);
  const { main } = dashboard;
  for (const name of ["Edit", "Share…", "Delete…"])
    await expect(main.getByText(name, { exact: true })).toHaveCount(0);
  await expect(main.getByRole("button", { name: /^Include or exclude/ })).toHaveCount(0);
  await dashboard.open(`/collections/${id}?edit=true`, world.keys.read);
  await expect(main).toContainText("This key may only read.");
});
