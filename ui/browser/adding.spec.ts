// Tracking more accounts, and pausing one.

import { PATHS } from "./dashboard.ts";
import { apiClient } from "./environment.ts";
import { expect, expectAccessible, test } from "./fixtures.ts";

/** Lines that add nothing, and what the API says about them. */
const INVALID_LINES = new Map([
  ["bad!name", /letters, digits/],
  ["https://example.com/someone", /is not the URL of a profile/],
  ["a_username_that_is_far_too_long_for_any_platform", /2 to 24|1 to 30/],
]);

test.describe.configure({ mode: "serial" });

test("twenty accounts are added, and their posts appear", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.adding);
  const { addForm } = dashboard;
  await dashboard.addAccounts.click();
  const lines = [...INVALID_LINES.keys(), ...world.addable];
  expect(lines).toHaveLength(20);
  await addForm.lines.fill(lines.join("\n"));
  await addForm.submit.click();
  await expect(addForm.results).toHaveCount(lines.length);
  for (const [line, reason] of INVALID_LINES) {
    await expect(addForm.results.filter({ hasText: line })).toContainText(reason);
  }
  // The table below is pale whenever it is loaded again.
  await expectAccessible(page, "results of adding accounts", "all", "form:has(#add-title)");

  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.adding });
  const scraped = async () => {
    const { data } = await api.GET("/accounts", { params: { query: { limit: 100 } } });
    return data?.data.filter(({ last_scrape_time }) => last_scrape_time !== null).length;
  };
  await expect.poll(scraped, { timeout: 45_000 }).toBe(world.addable.length);
  const posts = async () =>
    (await api.GET("/content", { params: { query: { limit: 1 } } })).data?.data.length;
  await expect.poll(posts).toBe(1);
  await dashboard.go("Content");
  await expect.poll(() => dashboard.table("Content").rows.count()).toBeGreaterThan(10);
  await dashboard.go("Accounts");
  await expect(dashboard.table("Accounts").rows).toHaveCount(world.addable.length);
});

test("adding an account twice says that it exists", async ({ dashboard, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.adding);
  await dashboard.addAccounts.click();
  await dashboard.addForm.lines.fill(world.addable[0] ?? "");
  await dashboard.addForm.submit.click();
  await expect(dashboard.addForm.results).toContainText(/already|exists/i);
});

test("an account is paused and resumed", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.adding);
  await dashboard.table("Accounts").rows.first().getByRole("link").first().click();
  const { pause, resume } = dashboard;
  const isActive = async () => {
    const account_id = new URL(page.url()).pathname.split("/")[2] ?? "";
    const { data } = await apiClient({ baseUrl: world.baseUrl, key: world.keys.adding }).GET(
      "/accounts/{account_id}",
      { params: { path: { account_id } } },
    );
    return data?.data.is_active;
  };
  await pause.click();
  await expect(resume).toBeVisible();
  await expect(dashboard.main.getByText(/^paused$/i).first()).toBeVisible();
  expect(await isActive()).toBe(false);
  await expectAccessible(page, "a paused account");
  await resume.click();
  await expect(pause).toBeVisible();
  expect(await isActive()).toBe(true);
});

test("an account that was just read says when it can be read again", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.adding);
  await dashboard.table("Accounts").rows.first().getByRole("link").first().click();
  await dashboard.main.getByRole("button", { name: "Refresh now" }).click();
  await expect(dashboard.card("Tracking").getByRole("status")).toContainText(/read a short time ago.* UTC/);
  await expectAccessible(page, "an account that is fresh");
});

test("selected accounts are labelled together, and removed", async ({ dashboard, page, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.adding });
  const accounts = async () => (await api.GET("/accounts", { params: { query: { limit: 100 } } })).data?.data;
  const [first] = (await accounts()) ?? [];
  await api.PATCH("/accounts/{account_id}", {
    params: { path: { account_id: first?.id ?? "" } },
    body: { metadata: { team: "north" } },
  });
  await dashboard.open(`${PATHS.Accounts}?sort=username`, world.keys.adding);
  const { rows } = dashboard.table("Accounts");
  const count = await rows.count();
  const select = async () => {
    await rows
      .filter({ hasText: `@${first?.username}` })
      .getByRole("checkbox")
      .check();
    await rows
      .filter({ hasNotText: `@${first?.username}` })
      .first()
      .getByRole("checkbox")
      .check();
  };
  const bar = page.getByRole("toolbar", { name: "Selected accounts" });
  const outcome = dashboard.card("Accounts").getByRole("status");
  const row = rows.filter({ hasText: `@${first?.username}` });
  const more = row.getByRole("button", { name: "More: " });
  for (const [action, done, status] of [
    ["Pause tracking", "paused", "Paused"],
    ["Resume tracking", "resumed", /Active|Waiting/],
  ] as const) {
    await more.click();
    await expectAccessible(page, "what can be done with an account");
    await dashboard.dialog.getByRole("button", { name: action }).click();
    await expect(outcome).toHaveText(`@${first?.username}: ${done}`);
    await expect(row).toContainText(status);
  }
  await more.click();
  await page.keyboard.press("Escape");
  await expect(more).toBeFocused();
  await select();
  await bar.getByRole("combobox", { name: /^Category/ }).fill("tides");
  await bar.getByRole("option", { name: /tides/ }).click();
  await expect(outcome).toContainText("2 in category tides");
  await select();
  await bar.getByRole("combobox", { name: /^Tag/ }).fill("client: Acme");
  await bar.getByRole("option", { name: "client: Acme" }).click();
  await expect(outcome).toContainText("2 tagged client: Acme");
  const labelled = (await accounts())?.filter(({ category }) => category === "tides") ?? [];
  expect(labelled).toHaveLength(2);
  for (const { id, metadata } of labelled)
    expect(metadata).toEqual({ ...(id === first?.id ? { team: "north" } : {}), client: "Acme" });
  await select();
  await bar.locator("summary").click();
  await expectAccessible(page, "what can be done with selected accounts");
  await bar.getByRole("button", { name: "Remove accounts…" }).click();
  await expect(dashboard.dialog).toContainText("Remove 2 accounts?");
  await dashboard.dialog.getByRole("button", { name: "Remove", exact: true }).click();
  await expect(outcome).toContainText("2 removed");
  await expect(rows).toHaveCount(count - 2);
  expect((await accounts())?.length).toBe(count - 2);
});
