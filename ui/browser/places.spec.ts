// Back, loading again and new tabs show what was shown.

import { Dashboard, PATHS, SignInForm } from "./dashboard.ts";
import { expect, test } from "./fixtures.ts";

test("back undoes a sort and a filter", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.read);
  const { headings } = dashboard.table("Accounts");
  const followers = headings.filter({ hasText: "Followers" }).first();
  await followers.getByRole("button").click();
  await dashboard.settled();
  const filter = page.getByRole("searchbox", { name: "Username contains" });
  await filter.pressSequentially("a.username");
  await expect(page).toHaveURL(/[?&]q=a.username(&|$)/);
  await dashboard.settled();
  await page.goBack();
  await expect(filter).toHaveValue("");
  await expect(dashboard.heading).toHaveText("Accounts");
  await expect(followers).toHaveAttribute("aria-sort", "descending");
  await page.goBack();
  await expect(dashboard.heading).toHaveText("Accounts");
  await expect(headings.filter({ hasText: "Views" }).first()).toHaveAttribute("aria-sort", "descending");
});

/** Opens the list of posts, shows more, scrolls down, and returns how far. */
async function scrollContent(dashboard: Dashboard, key: string): Promise<number> {
  const { page } = dashboard;
  await dashboard.open(`${PATHS.Content}?sort=-create_time`, key);
  const { rows } = dashboard.table("Content");
  await dashboard.showMore.click();
  await expect(rows).toHaveCount(100);
  await dashboard.settled();
  await rows.nth(80).scrollIntoViewIfNeeded();
  await expect.poll(() => page.evaluate(() => history.state?.scroll === scrollY)).toBe(true);
  return page.evaluate(() => scrollY);
}

test("back keeps the rows that were shown, and the place", async ({ dashboard, page, world }) => {
  const scrolled = await scrollContent(dashboard, world.keys.read);
  expect(scrolled).toBeGreaterThan(1_000);
  const { rows } = dashboard.table("Content");
  await rows.nth(80).getByRole("link").first().click();
  await expect(page).toHaveURL(/\/content\/./);
  await dashboard.settled();
  expect(await page.evaluate(() => scrollY)).toBe(0);
  await page.goBack();
  await expect(rows).toHaveCount(100);
  await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(scrolled - 50);
  await expect(rows.nth(80)).toBeInViewport();
});

test("loading again keeps the rows that were shown, and the place", async ({ dashboard, page, world }) => {
  const scrolled = await scrollContent(dashboard, world.keys.read);
  await page.reload();
  await expect(dashboard.table("Content").rows).toHaveCount(100);
  await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(scrolled - 50);
});

test("accounts that wait for their first read keep the list as long as it is", async ({
  dashboard,
  page,
  watch,
  world,
}) => {
  watch.allow(/status of 503/);
  const firstPages: string[] = [];
  await page.route(/\/v2\/accounts\/(metrics|timeseries)/, (route) =>
    route.fulfill({ status: 503, json: { detail: "not in this test" } }),
  );
  await page.route(/\/v2\/accounts\?.*order_by/, async (route) => {
    const url = new URL(route.request().url());
    const isMore = url.searchParams.has("cursor");
    if (!isMore) firstPages.push(url.href);
    url.searchParams.delete("cursor");
    const response = await route.fetch({ url: url.href });
    const {
      data: [account],
      ...rest
    } = await response.json();
    const data = Array.from({ length: 50 }, (_, number) => ({
      ...account,
      id: `00000000-0000-4000-8000-0000000${isMore ? 1 : 0}${String(number).padStart(4, "0")}`,
      tracking: { ...account.tracking, status: "pending" },
    }));
    await route.fulfill({
      response,
      json: { ...rest, data, pagination: { ...rest.pagination, next_cursor: isMore ? null : "more" } },
    });
  });
  await dashboard.open(`${PATHS.Accounts}?sort=username`, world.keys.read);
  await dashboard.showMore.click();
  const { rows } = dashboard.table("Accounts");
  await expect(rows).toHaveCount(100);
  await dashboard.settled();
  const card = dashboard.card("Accounts");
  await card.evaluate((card) => {
    new MutationObserver(() => card.setAttribute("data-was-pale", "")).observe(card, {
      attributeFilter: ["aria-busy"],
    });
  });
  const chosen = rows.nth(70).getByRole("checkbox");
  await chosen.check();
  const loads = firstPages.length;
  // One load follows the other: the first of them has ended.
  await expect.poll(() => firstPages.length, { timeout: 30_000 }).toBeGreaterThan(loads + 1);
  await expect(rows).toHaveCount(100);
  await expect(chosen).toBeChecked();
  await expect(chosen).toBeFocused();
  await expect(card).not.toHaveAttribute("data-was-pale");
});

test("a new tab is signed in by an answer that comes late", async ({ page, context, dashboard, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.read);
  await page.evaluate(() => {
    const { postMessage } = BroadcastChannel.prototype;
    BroadcastChannel.prototype.postMessage = function (message) {
      Object.assign(window, { answer: () => postMessage.call(this, message) });
    };
  });
  const other = await context.newPage();
  await other.goto(PATHS.Creators);
  await expect(new SignInForm(other).key).toBeVisible();
  // The question may come after that.
  await expect.poll(() => page.evaluate(() => "answer" in window)).toBe(true);
  await page.evaluate(() => (window as unknown as { answer: () => void }).answer());
  await expect(new Dashboard(other).heading).toHaveText("Creators");
});

test("a new tab is signed in as long as another is", async ({ page, context, dashboard, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.read);
  const other = await context.newPage();
  await other.goto(PATHS.Creators);
  await expect(new Dashboard(other).heading).toHaveText("Creators");
  await new Dashboard(other).signOut.click();
  await expect(new SignInForm(other).key).toBeVisible();
  await expect(new SignInForm(page).reason).toContainText("signed out in another tab");
  const third = await context.newPage();
  await third.goto("/");
  await expect(new SignInForm(third).key).toBeVisible();
});
