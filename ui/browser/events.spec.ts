// What happened, and what the server says by itself while a page is open.

import type { Page, Request } from "@playwright/test";

import { PATHS } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, expectAccessible, expectNoSidewaysScroll, test } from "./fixtures.ts";

const ACCOUNT = { id: crypto.randomUUID(), type: "account", platform: "tiktok", username: "salt.tide" };
const POST = { id: crypto.randomUUID(), platform: "tiktok", description: "First swell", account_id: null };

/** Each type of event, and how it is told. */
const TOLD = [
  ["video.published", { account: ACCOUNT, video: POST }, "@salt.tide posted First swell"],
  ["video.views_reached", { video: POST, threshold: 10_000 }, "First swell passed 10\u2009000 views"],
  [
    "video.breakout",
    { video: POST, age_days: 3, multiple: 8.57, actual: 184_000, baseline: 21_480.5 },
    "First swell has 8.6\u2009× the usual views after 3 days: 184k instead of 21.5k",
  ],
  [
    "account.followers_reached",
    { account: ACCOUNT, threshold: 1_000 },
    "@salt.tide passed 1\u2009000 followers",
  ],
  ["account.unavailable", { account: ACCOUNT }, "@salt.tide is no longer shown by TikTok"],
  ["account.available", { account: ACCOUNT }, "@salt.tide is shown by TikTok again"],
  ["account.renamed", { account: ACCOUNT, previous_username: "salt" }, "@salt is now called @salt.tide"],
  [
    "account.failing",
    { account: ACCOUNT, reason: "transient" },
    "@salt.tide is not updating: no answer in time",
  ],
  ["account.recovered", { account: ACCOUNT }, "@salt.tide is updating again"],
  [
    "import.ended",
    { import: { id: "1", status: "succeeded", filename: "a.csv", rows_read: 12, refused: 2, error: null } },
    "a.csv was loaded: 12 rows, 2 of them refused",
  ],
  ["video.sang", {}, "video.sang"],
] as const;

function eventOf(type: string, data: object) {
  return { id: crypto.randomUUID(), type, created_at: new Date().toISOString(), data };
}

test("events are told in sentences, and filtered by kind", async ({ dashboard, page, world }) => {
  await page.route(/\/v2\/events\?/, (route) =>
    route.fulfill({
      json: {
        data: TOLD.map(([type, data]) => eventOf(type, data)),
        pagination: { limit: 50, has_next: false, next_cursor: null },
      },
    }),
  );
  await dashboard.open(PATHS.Events, world.keys.read);
  const rows = await dashboard.table("Events").read();
  expect(rows.map((row) => row.get("What happened")?.text)).toEqual(TOLD.map(([, , text]) => text));
  await expectAccessible(page, "events");
  await page.setViewportSize({ width: 360, height: 780 });
  await expectNoSidewaysScroll(page, "events, 360 px");
  const [request] = await Promise.all([
    page.waitForRequest(/\/v2\/events\?.*type=/),
    page.getByRole("combobox", { name: "Kind" }).selectOption("milestones"),
  ]);
  expect(new URL(request.url()).searchParams.get("type")).toBe(
    "video.views_reached,account.followers_reached",
  );
});

test("an organization in which nothing happened says what is listed", async ({ dashboard, world }) => {
  await dashboard.open(PATHS.Events, world.keys.empty);
  await expect(dashboard.card("Events")).toContainText("Nothing happened yet");
});

/** Answers requests for the stream one after the other; each answer ends. */
async function answerStream(page: Page, texts: string[]): Promise<(string | null)[]> {
  const positions: (string | null)[] = [];
  await page.route("**/v2/events/stream", async (route) => {
    positions.push((await route.request().headerValue("Last-Event-ID")) ?? null);
    const body = texts[positions.length - 1];
    if (body === undefined) return;
    await route.fulfill({ contentType: "text/event-stream", body });
  });
  return positions;
}

test("a stream that ends goes on after the last event", async ({ dashboard, page, world }) => {
  const event = eventOf("account.available", { account: ACCOUNT });
  const positions = await answerStream(page, [
    `: hello\n\nevent: ${event.type}\nid: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`,
  ]);
  await dashboard.open(PATHS.API, world.keys.read);
  await expect.poll(() => positions).toEqual([null, event.id]);
});

/** Counts how often what is shown turned pale, or rows were taken off the page; from now on. */
async function watchChanges(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(() => {
    const seen: string[] = [];
    Object.assign(window, { seen });
    new MutationObserver((changes) => {
      for (const { target, removedNodes } of changes) {
        if (!(target instanceof Element)) continue;
        if (target.getAttribute("aria-busy") === "true") seen.push("pale");
        if (target.matches("tbody tr[hidden]")) seen.push("hidden");
        if ([...removedNodes].some((node) => node.nodeName === "TR")) seen.push("removed");
      }
    }).observe(document, { subtree: true, childList: true, attributes: true });
  });
  return () => page.evaluate(() => (window as unknown as { seen: string[] }).seen);
}

test("news are added in place: focus, selection and scroll stay, and nothing turns pale", async ({
  dashboard,
  page,
  world,
}) => {
  const events = Array.from({ length: 80 }, (_, number) =>
    eventOf("video.published", { account: ACCOUNT, video: { ...POST, description: `Swell ${number}` } }),
  );
  await page.route(/\/v2\/events\?/, (route) =>
    route.fulfill({
      json: { data: events, pagination: { next_cursor: null, has_next: false, limit: 50 }, filters: {} },
    }),
  );
  let tell = () => {};
  const isTold = new Promise<void>((resolve) => (tell = resolve));
  await page.route("**/v2/events/stream", async (route) => {
    await isTold;
    await route.fulfill({ contentType: "text/event-stream", body: "event: data.changed\ndata: {}\n\n" });
  });
  await dashboard.open(PATHS.Events, world.keys.read);
  const { rows } = dashboard.table("Events");
  await expect(rows).toHaveCount(80);
  const link = rows.filter({ hasText: "Swell 40" }).getByRole("link").last();
  await link.focus();
  await link.scrollIntoViewIfNeeded();
  await rows.filter({ hasText: "Swell 41" }).evaluate((row) => getSelection()?.selectAllChildren(row));
  const selected = await page.evaluate(() => getSelection()?.toString());
  expect(selected).toContain("Swell 41");
  const place = () => link.evaluate((element) => Math.round(element.getBoundingClientRect().top));
  const before = await place();
  const changes = await watchChanges(page);
  events.unshift(eventOf("account.recovered", { account: ACCOUNT }));
  tell();
  await expect(rows).toHaveCount(81);
  await expect(rows.first()).toContainText("is updating again");
  await expect(link).toBeFocused();
  expect(await page.evaluate(() => getSelection()?.toString())).toBe(selected);
  await expect.poll(place).toBe(before);
  expect(await changes()).toEqual([]);
});

test("an import is followed in place", async ({ dashboard, page, watch, world }) => {
  watch.allow(/ERR_FAILED/);
  const running = {
    id: crypto.randomUUID(),
    type: "import",
    filename: "tide.csv",
    status: "running",
    dry_run: false,
    rows_read: 10,
    refused: 0,
    accounts: 1,
    videos: 1,
    snapshots_written: 10,
    refusals: [],
    error: null,
    created_at: new Date().toISOString(),
    finished_at: null,
  };
  await page.route(/\/v2\/imports\?/, (route) =>
    route.fulfill({
      json: { data: [running], pagination: { next_cursor: null, has_next: false, limit: 25 }, filters: {} },
    }),
  );
  await page.route("**/v2/events/stream", (route) => route.abort("failed"));
  await dashboard.open(PATHS.Import, world.keys.importing);
  const row = dashboard.table("Imports").rows.filter({ hasText: "tide.csv" });
  const cancel = row.getByRole("button", { name: "Cancel" });
  await cancel.focus();
  const changes = await watchChanges(page);
  running.rows_read = 1_234;
  await expect(row).toContainText("1\u2009234");
  await expect(cancel).toBeFocused();
  running.status = "succeeded";
  await expect(row).toContainText("Done");
  expect(await changes()).toEqual([]);
});

test("figures follow when they change, without turning pale", async ({ dashboard, page, world }) => {
  await answerStream(page, ["event: data.changed\ndata: {}\n\n"]);
  let answers = 0;
  await page.route(/\/v2\/overview/, async (route) => {
    const response = await route.fetch();
    const { data, ...rest } = await response.json();
    answers += 1;
    const views = { ...data.views, current: answers === 1 ? 1_000 : 2_000 };
    await route.fulfill({ response, json: { ...rest, data: { ...data, views } } });
  });
  await page.addInitScript(() => {
    const seen = window as unknown as { wasPale: boolean };
    let hadFigures = false;
    new MutationObserver(() => {
      const card = document.querySelector("section[aria-label='Gained in this period']");
      hadFigures ||= card?.textContent?.includes("+1.00k") ?? false;
      if (hadFigures && card?.getAttribute("aria-busy") === "true") seen.wasPale = true;
    }).observe(document, { subtree: true, childList: true, attributes: true });
  });
  await dashboard.open(PATHS.Overview, world.keys.read);
  await expect(dashboard.tile("Views")).toContainText("+2.00k");
  expect(await page.evaluate(() => "wasPale" in window)).toBe(false);
});

test("while the stream is open, nothing is asked for again and again", async ({ dashboard, page, world }) => {
  let requested = 0;
  const identities = new Set<Request>();
  page.on("request", (request) => {
    if (!request.url().endsWith("/whoami")) return;
    requested += 1;
    identities.add(request);
  });
  page.on("requestfinished", (request) => identities.delete(request));
  await page.clock.install();
  await page.route("**/v2/events/stream", async (route) => route.continue());
  const isOpen = page.waitForResponse("**/v2/events/stream");
  await dashboard.open(PATHS.Tracking, world.keys.read);
  expect((await isOpen).headers()["content-type"]).toContain("text/event-stream");
  for (let passed = 0; passed < 6; passed++) {
    await page.clock.runFor(5_000);
    await expect.poll(() => identities.size).toBe(0);
  }
  // Once by the page, and once at most by a timer that was set before the stream was open.
  expect(requested).toBeLessThanOrEqual(2);
});

test("a hidden page has no stream", async ({ dashboard, page, world }) => {
  const hide = (isHidden: boolean) =>
    page.evaluate((isHidden) => {
      Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, isHidden);
  const isOpen = page.waitForRequest("**/v2/events/stream");
  await dashboard.open(PATHS.API, world.keys.read);
  const stream = await isOpen;
  const [ended] = await Promise.all([page.waitForEvent("requestfailed"), hide(true)]);
  expect(ended).toBe(stream);
  await Promise.all([page.waitForRequest("**/v2/events/stream"), hide(false)]);
});

/** How many accounts there are. */
async function countImports({ baseUrl, keys }: World): Promise<number> {
  const { data } = await apiClient({ baseUrl, key: keys.importing }).GET("/imports", {});
  return data?.data.length ?? 0;
}

test("a file that is dropped on any page is looked at", async ({ dashboard, page, world }) => {
  const before = await countImports(world);
  await dashboard.open(PATHS.Accounts, world.keys.importing);
  const transfer = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    const row = '{"platform": "tiktok", "username": "neap.tide", "external_id": "7301234567890000009"}';
    transfer.items.add(new File([row], "neap.jsonl"));
    return transfer;
  });
  await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
  await expect(page.getByText("Drop the file to import it")).toBeVisible();
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
  await expect(dashboard.heading).toHaveText("Import");
  await expect(dashboard.main.getByText("neap.jsonl").first()).toBeVisible();
  await expect.poll(() => countImports(world)).toBeGreaterThan(before);
});
