// A file is looked at, loaded and reported on.

import { PATHS } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, expectAccessible, expectNoSidewaysScroll, test } from "./fixtures.ts";

/** Rows of two posts, and one that is refused. */
function rows(username: string, world: World): string {
  const observed_at = new Date(Date.now() + world.clockOffset - 86_400_000).toISOString();
  const row = (external_id: string, view_count: unknown) =>
    JSON.stringify({ platform: "tiktok", username, external_id, observed_at, view_count });
  return [
    row("7301234567890000001", 100),
    row("7301234567890000002", 200),
    row("7301234567890000003", "many"),
  ].join("\n");
}

function file(name: string, text: string) {
  return { name, mimeType: "application/octet-stream", buffer: Buffer.from(text) };
}

test("a file is previewed, loaded and listed", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Import, world.keys.importing);
  const { main } = dashboard;
  await main.locator("input[type=file]").setInputFiles(file("low-tide.jsonl", rows("low.tide", world)));
  await expect(main.getByText("This is what it contains.")).toBeVisible();
  await expect(main.getByRole("region", { name: "First rows" })).toContainText("low.tide");
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.importing });
  const accounts = async () => (await api.GET("/accounts", {})).data?.data.length;
  expect(await accounts(), "nothing is stored yet").toBe(0);
  await expectAccessible(page, "the preview of a file");

  await main.getByRole("button", { name: "Load the other 2 rows" }).click();
  await expect(main.getByText("Loaded, and visible on every page.")).toBeVisible();
  expect(await accounts()).toBe(1);
  // Other tests import at the same time.
  const listed = dashboard.table("Imports").rows.filter({ hasText: "low-tide.jsonl" });
  await expect(listed).toHaveCount(2);
  await expect(listed.first()).toContainText("Done");
  await listed.first().locator("summary").click();
  await expect(listed.first()).toContainText("many");
  await expectAccessible(page, "imports");
  await page.setViewportSize({ width: 360, height: 900 });
  await expectNoSidewaysScroll(page, "imports, 360 px");
});

test("a file that is dropped and no table says why", async ({ dashboard, page, world }) => {
  await dashboard.open(PATHS.Import, world.keys.importing);
  const transfer = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["\u0000 no table"], "picture.png"));
    return transfer;
  });
  await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
  await expect(dashboard.main.getByText(/It cannot be loaded: .*picture\.png/)).toBeVisible();
});

test("options are sent, and their mistakes shown", async ({ dashboard, watch, world }) => {
  watch.allow(/status of 422/);
  await dashboard.open(PATHS.Import, world.keys.importing);
  const { main } = dashboard;
  await main.getByText("What the file does not say", { exact: true }).first().click();
  await main.getByLabel("Time zone").fill("Europe/Atlantis");
  await main.locator("input[type=file]").setInputFiles(file("posts.jsonl", rows("high.tide", world)));
  await expect(main.getByRole("alert")).toContainText("time_zone must be the IANA name");
  await main.getByLabel("Time zone").fill("Europe/Berlin");
  await main.getByRole("button", { name: "Look again" }).click();
  await expect(main.getByText("This is what it contains.")).toBeVisible();
});

test("a key that may only read sees imports and sends none", async ({ dashboard, world }) => {
  await dashboard.open(PATHS.Import, world.keys.read);
  await expect(dashboard.card("Imports")).toContainText("Nothing was imported yet.");
  await expect(dashboard.main.locator("input[type=file]")).toHaveCount(0);
});
