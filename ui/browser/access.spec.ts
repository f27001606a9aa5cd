// Signing in and out, and what a key permits.

import { Dashboard, PAGE_NAMES, PATHS, SignInForm } from "./dashboard.ts";
import { act } from "./environment.ts";
import { expect, expectAccessible, expectNoSidewaysScroll, test } from "./fixtures.ts";

const STORAGE = () => [Object.values(sessionStorage), Object.values(localStorage)];

test("signing in with a key lasts until the last tab closes", async ({ page, context, dashboard, world }) => {
  const form = new SignInForm(page);
  await page.goto("/");
  await expect(form.key).toBeVisible();
  await expectAccessible(page, "sign-in page");
  await page.setViewportSize({ width: 360, height: 780 });
  await expectNoSidewaysScroll(page, "sign-in page");
  await form.signIn(world.keys.write);
  await expect(dashboard.heading).toHaveText("Overview");
  expect(await page.evaluate(STORAGE)).toEqual([[world.keys.write], []]);
  await page.reload();
  await expect(dashboard.heading).toHaveText("Overview");
  await page.close();
  const otherTab = await context.newPage();
  await otherTab.goto("/");
  const otherForm = new SignInForm(otherTab);
  await expect(otherForm.key).toBeVisible();
  await otherForm.signIn(world.keys.write);
  await new Dashboard(otherTab).signOut.click();
  await expect(otherForm.key).toBeVisible();
  expect(await otherTab.evaluate(STORAGE)).toEqual([[], []]);
});

test("staying signed in lasts on the device", async ({ page, context, dashboard, world }) => {
  const form = new SignInForm(page);
  await page.goto(PATHS.Accounts);
  await form.staySignedIn.check();
  await form.signIn(world.keys.write);
  await expect(dashboard.heading).toHaveText("Accounts");
  expect(await page.evaluate(STORAGE)).toEqual([[], [world.keys.write]]);
  const otherTab = await context.newPage();
  await otherTab.goto("/");
  await expect(new Dashboard(otherTab).heading).toHaveText("Overview");
});

test("a link signs in, and its key leaves the address at once", async ({ page, dashboard, world }) => {
  const addresses: string[] = [];
  await page.route("**/v2/**", (route) => {
    addresses.push(page.url());
    return route.continue();
  });
  await dashboard.open(`${PATHS.Creators}?period=7d`, world.keys.write);
  await expect(dashboard.heading).toHaveText("Creators");
  expect(new Set(addresses)).toEqual(new Set([new URL(`${PATHS.Creators}?period=7d`, world.baseUrl).href]));
  expect(await page.evaluate(() => history.length)).toBe(2);
});

test("a wrong key is refused", async ({ page, watch }) => {
  watch.allow(/status of 401/);
  const form = new SignInForm(page);
  await page.goto("/");
  await form.signIn("tmk_this_is_not_a_key_of_anyone_at_all_0000");
  await expect(form.reason).toContainText(/key/i);
  await expect(form.key).toBeVisible();
  expect(await page.evaluate(STORAGE)).toEqual([[], []]);
  await page.emulateMedia({ colorScheme: "dark" });
  await expectAccessible(page, "sign-in page with a message, dark");
});

test("a revoked key ends the session", async ({ page, dashboard, watch, world }) => {
  watch.allow(/status of (401|403)/);
  await dashboard.open(PATHS.Accounts, world.keys.revocable);
  const form = new SignInForm(page);
  await act("revoke-key");
  // Within 5 s, on a busy machine a little more.
  await expect(form.key).toBeVisible({ timeout: 8_000 });
  await expect(form.reason).toContainText(/key/i);
  await expect(page).toHaveURL(PATHS.Accounts);
  await form.signIn(world.keys.read);
  await expect(dashboard.heading).toHaveText("Accounts");
});

/** Buttons and links of actions that need the scope `write`. */
const WRITES =
  /^(add|create|delete|edit|link|new (account|creator)|pause|refresh|remove|rename|resume|save(?! as CSV)|stop|track|unlink|untrack)\b/i;

test("a key that may only read sees no controls that write", async ({ dashboard, world }) => {
  const found: string[] = [];
  const collect = async () =>
    found.push(...(await dashboard.main.getByRole("button", { name: WRITES }).allTextContents()));
  await dashboard.open(PATHS.Overview, world.keys.read);
  for (const name of PAGE_NAMES) {
    await dashboard.go(name);
    await collect();
    if (!["Content", "Accounts", "Creators"].includes(name)) continue;
    await dashboard.main.getByRole("table").first().getByRole("link").first().click();
    await expect(dashboard.heading).not.toHaveText(name);
    await dashboard.settled();
    await collect();
  }
  expect(found).toEqual([]);
  await dashboard.open(PATHS.Accounts, world.keys.write);
  await collect();
  expect(found).toEqual(["Add accounts"]);
});

test("an organization without accounts says how to begin", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.empty);
  await expect(dashboard.main).toContainText(/tracked yet/i);
  await expectAccessible(page, "overview without accounts");
  for (const name of PAGE_NAMES) {
    await dashboard.go(name);
    await expect(dashboard.tryAgain).toHaveCount(0);
  }
  await page.goBack();
  await dashboard.go("Overview");
  await dashboard.main.getByRole("link", { name: /add/i }).click();
  await expect(dashboard.heading).toHaveText("Accounts");
});
