// The search palette, by keyboard.

import { PATHS } from "./dashboard.ts";
import { expect, expectAccessible, test } from "./fixtures.ts";

test("the palette finds accounts, creators, content and pages", async ({ dashboard, page, world }) => {
  const { palette, heading } = dashboard;
  await dashboard.open(PATHS.Overview, world.keys.write);
  const find = async (shortcut: string, text: string, found: string | RegExp) => {
    await page.keyboard.press(shortcut);
    await expect(palette.input).toBeFocused();
    await page.keyboard.type(text);
    await expect(palette.chosen).toContainText(found);
    await page.keyboard.press("Enter");
    await expect(palette.dialog).toBeHidden();
    await dashboard.settled();
  };
  await find("/", "a.username.of", "a.username.of.24.letters");
  await expect(page).toHaveURL(/\/accounts\/./);
  await expect(heading).toContainText("a.username.of.24.letters");
  await find("Control+k", "Featherstonehaugh", "Maximiliana-Theodora");
  await expect(page).toHaveURL(/\/creators\/./);
  await find("/", "العربية", "القهوة العربية");
  await expect(page).toHaveURL(/\/content\/./);
  await find("/", "track", "Tracking");
  await expect(heading).toHaveText("Tracking");
});

test("the palette is a dialog", async ({ dashboard, page, world }) => {
  const { palette } = dashboard;
  await dashboard.open(PATHS.Overview, world.keys.write);
  await dashboard.searchButton.click();
  await expect(palette.input).toBeFocused();
  await expectAccessible(page, "palette");
  await page.emulateMedia({ colorScheme: "dark" });
  await expectAccessible(page, "palette, dark", "looks");
  await page.keyboard.press("ArrowDown");
  const second = palette.hits.nth(1);
  await expect(second).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("ArrowUp");
  await expect(palette.hits.first()).toHaveAttribute("aria-selected", "true");
  await page.keyboard.type("nothing has this name");
  await expect(palette.dialog).toContainText(/nothing/i);
  await expect(palette.hits).toHaveCount(0);
  await page.keyboard.press("Enter");
  await expect(palette.dialog).toBeVisible();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await expect(palette.dialog).toBeHidden();
  await expect(dashboard.searchButton).toBeFocused();
});
