// The address holds what a page shows: reload, back and a shared link show the same.

import type { Locator } from "@playwright/test";

import { type Dashboard, PATHS } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, expectAccessible, test } from "./fixtures.ts";

const PAGES: Readonly<Record<string, string>> = {
  Overview: PATHS.Overview,
  Content: PATHS.Content,
  Accounts: PATHS.Accounts,
  Creators: PATHS.Creators,
  Tracking: PATHS.Tracking,
};

/** Texts for fields, by their type. */
const TEXTS: Readonly<Record<string, string>> = { search: "e", number: "1", date: "2026-01-31" };

/** Chooses something else than what is chosen. */
async function change(choice: Locator): Promise<void> {
  const { tag, type } = await choice.evaluate((element) => ({
    tag: element.tagName,
    type: element.getAttribute("type") ?? "",
  }));
  if (tag === "SELECT") {
    const other = await choice.evaluate((select) => {
      const { options, value } = select as HTMLSelectElement;
      return (
        [...options]
          .map((option) => option.value)
          .find((option) => option !== value && option !== "" && option !== "custom") ?? null
      );
    });
    await choice.selectOption(other);
  } else if (tag === "BUTTON") {
    if ((await choice.getAttribute("aria-pressed")) === "false") await choice.click();
  } else if (type === "radio") {
    await choice.check();
  } else if (type === "checkbox") {
    await choice.setChecked(!(await choice.isChecked()));
  } else {
    await choice.fill(TEXTS[type] ?? "");
    await choice.press("Enter");
  }
}

/** What is chosen on the page: the names of the controls, and their values. */
function chosen(dashboard: Dashboard): Promise<[name: string, value: string][]> {
  return dashboard.choices.evaluateAll((elements) =>
    elements.map((element): [string, string] => {
      const control = element as HTMLInputElement;
      // The numbers of a tile load.
      const text = element.firstElementChild ?? element;
      const name =
        element.getAttribute("aria-label") ??
        control.labels?.[0]?.textContent.trim() ??
        text.textContent?.trim();
      const isChecked = ["checkbox", "radio"].includes(control.type);
      const value = isChecked ? control.checked : (element.getAttribute("aria-pressed") ?? control.value);
      return [name ?? "", String(value)];
    }),
  );
}

/** Changes each choice once, also those that others bring. */
async function changeAll(dashboard: Dashboard): Promise<void> {
  const initial = await chosen(dashboard);
  const changed = new Set<string>();
  for (;;) {
    const [address, before] = [dashboard.page.url(), await chosen(dashboard)];
    const position = before.findIndex(([name]) => !changed.has(name));
    if (position < 0) break;
    const name = before[position]?.[0] ?? "";
    changed.add(name);
    await change(dashboard.choices.nth(position));
    if ((await chosen(dashboard)).join() === before.join()) continue;
    await expect(dashboard.page, `the address holds ${name}`).not.toHaveURL(address);
    await dashboard.settled();
  }
  expect(await chosen(dashboard)).not.toEqual(initial);
}

async function expectAddressHoldsChoices(dashboard: Dashboard): Promise<void> {
  const { page } = dashboard;
  await changeAll(dashboard);
  const [address, choices] = [page.url(), await chosen(dashboard)];
  await page.reload();
  await dashboard.settled();
  expect(await chosen(dashboard), "after a reload").toEqual(choices);
  expect(page.url()).toBe(address);
  await dashboard.go("API");
  await page.goBack();
  await dashboard.settled();
  expect(page.url()).toBe(address);
  expect(await chosen(dashboard), "after going back").toEqual(choices);
}

for (const [name, path] of Object.entries(PAGES)) {
  test(`choices on ${name} are in the address`, async ({ dashboard, world }) => {
    await dashboard.open(path, world.keys.read);
    await expectAddressHoldsChoices(dashboard);
  });
}

async function firstId(world: World, path: "/accounts" | "/content" | "/creators"): Promise<string> {
  const { data } = await apiClient({ baseUrl: world.baseUrl, key: world.keys.write }).GET(path, {
    params: { query: { limit: 1 } },
  });
  return data?.data[0]?.id ?? "";
}

for (const path of ["/accounts", "/content", "/creators"] as const) {
  test(`choices on one of ${path} are in the address`, async ({ dashboard, world }) => {
    // Settings are no part of the address, and not shown with this key.
    await dashboard.open(`${path}/${await firstId(world, path)}`, world.keys.read);
    await expectAddressHoldsChoices(dashboard);
  });
}

test("the order of a table is in the address", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Accounts, world.keys.write);
  const { headings, rows } = dashboard.table("Accounts");
  const followers = headings.filter({ hasText: "Followers" }).first();
  await followers.getByRole("button").click();
  await dashboard.settled();
  const direction = (await followers.getAttribute("aria-sort")) ?? "";
  expect(direction).toMatch(/ascending|descending/);
  const order = await rows.allTextContents();
  await page.reload();
  await dashboard.settled();
  await expect(followers).toHaveAttribute("aria-sort", direction);
  expect(await rows.allTextContents()).toEqual(order);
  await followers.getByRole("button").click();
  await expect(followers).not.toHaveAttribute("aria-sort", direction);
  await dashboard.settled();
  expect(await rows.first().textContent()).not.toBe(order[0]);
});

test("a range of one's own is in the address", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Overview, world.keys.write);
  const [start, end] = ["2025-10-05", "2025-10-20"];
  await dashboard.chooseRange(start, end);
  await expect(page).toHaveURL(new RegExp(`start_date=${start}&end_date=${end}`));
  await page.reload();
  await expect(dashboard.main).toContainText("5 Oct – 20 Oct 2025");
});

test("days are chosen in a calendar, by keyboard as well", async ({ dashboard, page, world }) => {
  await dashboard.open("/?period=custom&start_date=2025-09-20&end_date=2025-10-20", world.keys.read);
  await page.getByText("Calendar", { exact: true }).click();
  await expectAccessible(page, "the calendar of the range");
  await page.getByRole("button", { name: "10 Oct 2025", exact: true }).click();
  await expect(page).toHaveURL(/start_date=2025-09-20/);
  await page.getByRole("button", { name: "12 Oct 2025", exact: true }).click();
  await expect(page).toHaveURL(/start_date=2025-10-10&end_date=2025-10-12/);
  await dashboard.settled();
  // A day before the first one begins again.
  const current = page.getByRole("button", { name: "20 Oct 2025", exact: true });
  await current.focus();
  await page.keyboard.press("ArrowLeft");
  await expect(page.getByRole("button", { name: "19 Oct 2025", exact: true })).toBeFocused();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.keyboard.press("PageDown");
  await expect(page.getByRole("button", { name: "1 Nov 2025", exact: true })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/start_date=2025-10-12&end_date=2025-11-01/);
  await page.keyboard.press("Escape");
  await expect(page.getByRole("grid")).toBeHidden();
});

test("invalid parameters show the default", async ({ dashboard, world }) => {
  await dashboard.open(
    "/?period=12d&platform=x&metric=constructor&start_date=x&sort=;&cursor=%00",
    world.keys.write,
  );
  await expect(dashboard.tryAgain).toHaveCount(0);
  await expect(dashboard.main).toContainText("UTC");
});
