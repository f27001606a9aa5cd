// Every page: accessible, and without sideways scrolling, on wide and narrow screens, light and dark.
// `make test-deep` looks at more of them, in all four forms.

import type { Page } from "@playwright/test";

import { type Dashboard, PATHS } from "./dashboard.ts";
import { apiClient } from "./environment.ts";
import { expect, expectAccessible, expectNoSidewaysScroll, test } from "./fixtures.ts";

/** The most requests that a page may send until it is loaded. */
const MAX_REQUESTS = 8;

/** Shifts of less are not seen. */
const MAX_SHIFT = 0.01;

type Records = "/accounts" | "/content" | "/creators";

/** The address of the record that is first in an order. */
function first(path: Records, query: object) {
  return async ({ baseUrl, keys }: { baseUrl: string; keys: { write: string } }) => {
    const { data } = await apiClient({ baseUrl, key: keys.write }).GET(path, {
      params: { query: { limit: 1, ...query } },
    });
    const id = data?.data[0]?.id;
    if (!id) throw new Error(`${path} has no record`);
    return `${path}/${id}`;
  };
}

const PAGES = {
  ...PATHS,
  "an account": first("/accounts", { order_by: "follower_count", order_direction: "desc" }),
  "a post in Arabic": first("/content", { order_by: "view_count", order_direction: "desc" }),
  "a creator with a long name": first("/creators", { q: "Maximiliana" }),
};

const VARIANTS = {
  "content by age": "/content?sort=-create_time",
  "content without a match": "/content?q=nothinghasthisinitscaption",
  "a failing account": first("/accounts", { status: "failing" }),
  "an unavailable account": first("/accounts", { status: "unavailable" }),
  "a paused account": first("/accounts", { status: "paused" }),
  "a post tracked alone": first("/content", { kind: "tracked" }),
  "a post with hidden likes": first("/content", { q: "hidden" }),
  "a new collection": "/collections?edit=true",
  "a record that does not exist": "/accounts/00000000-0000-4000-8000-000000000000",
  "a range of years": "/?period=custom&start_date=2024-03-01&end_date=2025-12-31",
};

interface Form {
  width: 1280 | 360;
  colorScheme: "light" | "dark";
}

const TWO_FORMS: readonly Form[] = [
  { width: 1280, colorScheme: "light" },
  { width: 360, colorScheme: "dark" },
];
const OTHER_FORMS: readonly Form[] = [
  { width: 1280, colorScheme: "dark" },
  { width: 360, colorScheme: "light" },
];

async function expectReadable(dashboard: Dashboard, name: string, forms: readonly Form[]): Promise<void> {
  const { page } = dashboard;
  for (const [position, { width, colorScheme }] of forms.entries()) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await expectNoSidewaysScroll(page, `${name}, ${width} px`);
    await expectAccessible(page, `${name}, ${width} px, ${colorScheme}`, position === 0 ? "all" : "looks");
  }
}

interface LayoutShift extends PerformanceEntry {
  value: number;
  sources: { node: Element | null; previousRect: DOMRect; currentRect: DOMRect }[];
}

interface Shift {
  /** The share of the screen, times how far it moved. */
  value: number;
  moved: string[];
}

/** What moved without an action of the person. */
function layoutShifts(page: Page): Promise<Shift[]> {
  return page.evaluate(
    () =>
      new Promise<Shift[]>((resolve) => {
        const describe = ({ value, sources }: LayoutShift) => ({
          value,
          moved: sources.map(
            ({ node, previousRect, currentRect }) =>
              `${node?.className}: ${previousRect.y} to ${currentRect.y}`,
          ),
        });
        new PerformanceObserver((list) =>
          resolve((list.getEntries() as LayoutShift[]).map(describe)),
        ).observe({ type: "layout-shift", buffered: true });
        requestAnimationFrame(() => setTimeout(() => resolve([]), 100));
      }),
  );
}

for (const [name, address] of Object.entries(PAGES)) {
  test(`${name} is readable`, async ({ dashboard, page, world }) => {
    const requests: string[] = [];
    // The identity is requested again while the page is open, and the stream of events stays. The identity comes last: what it
    // lets a person do has its room before.
    page.on(
      "request",
      (request) =>
        request.url().startsWith(world.baseUrl) &&
        !/\/(whoami|events\/stream)$/.test(request.url()) &&
        requests.push(request.url()),
    );
    let send = () => {};
    const isSent = new Promise<void>((resolve) => (send = resolve));
    await page.route("**/whoami", async (route) => {
      await isSent;
      await route.continue();
    });
    // The page about the API shows it.
    if (name === "API") send();
    // Without the stream, which the identity opens, pages poll.
    await page.addInitScript(() => Object.assign(window, { setInterval: () => 0 }));
    const path = typeof address === "string" ? address : await address(world);
    await page.goto(`${path}#key=${world.keys.write}`);
    await dashboard.loaded();
    const identity = name === "API" ? null : page.waitForResponse("**/whoami");
    send();
    await identity;
    expect(requests.length + 1, requests.join("\n")).toBeLessThanOrEqual(MAX_REQUESTS);
    expect(requests, "each is sent once").toEqual([...new Set(requests)]);
    await expect(page).toHaveTitle(/Tidemark/);
    const shifts = await layoutShifts(page);
    // A name of two lines, not known before, moves what is below it.
    if (!name.includes("long name"))
      expect(
        shifts.reduce((sum, { value }) => sum + value, 0),
        `nothing moves while it loads: ${JSON.stringify(shifts)}`,
      ).toBeLessThan(MAX_SHIFT);
    await expectReadable(dashboard, name, TWO_FORMS);
  });
}

for (const [name, address] of Object.entries({ ...PAGES, ...VARIANTS })) {
  test(`${name} is readable in every form @deep`, async ({ dashboard, watch, world }) => {
    if (name === "a record that does not exist") watch.allow(/status of 404/);
    await dashboard.open(typeof address === "string" ? address : await address(world), world.keys.write);
    await expectReadable(dashboard, name, [...TWO_FORMS, ...OTHER_FORMS]);
  });
}

test("a page's requests start before its code is there", async ({ dashboard, page, world }) => {
  const requested: string[] = [];
  page.on(
    "request",
    (request) =>
      request.url().startsWith(world.baseUrl) &&
      requested.push(new URL(request.url()).pathname.replace("/v2", "")),
  );
  const account = await PAGES["an account"](world);
  const expected = {
    [PATHS.Overview]: [
      "/analytics/timeseries",
      "/overview",
      "/content/top",
      "/content/breakouts",
      "/accounts/top",
      "/creators/top",
      "/tracking",
      "/whoami",
    ],
    [PATHS.Content]: ["/content/top", "/whoami"],
    [PATHS.Accounts]: ["/accounts/top", "/whoami"],
    [PATHS.Collections]: ["/collections", "/whoami"],
    [account]: [
      account,
      "/analytics/timeseries",
      "/overview",
      "/content/top",
      `${account}/benchmarks`,
      "/whoami",
    ],
  };
  for (const [path, paths] of Object.entries(expected)) {
    requested.length = 0;
    let send = () => {};
    const isSent = new Promise<void>((resolve) => (send = resolve));
    await page.route("**/app.js", async (route) => {
      await isSent;
      await route.continue();
    });
    await page.goto(`${path}#key=${world.keys.write}`, { waitUntil: "commit" });
    await expect.poll(() => requested.toSorted()).toEqual(paths.toSorted());
    send();
    await dashboard.settled();
    await page.unroute("**/app.js");
    await page.goto("about:blank");
  }
});

test("faults of a page are noticed", async ({ page, watch }) => {
  await page.goto("/");
  await page.evaluate(() => document.body.setAttribute("style", "color: red"));
  await page.evaluate(() => console.error("said"));
  await page.evaluate(
    () =>
      void setTimeout(() => {
        throw new Error("thrown");
      }),
  );
  await page.evaluate(() => fetch("http://127.0.0.1:1/").catch(() => null));
  for (const expected of [/inline style/, /said/, /thrown/, /connect-src/])
    await expect.poll(() => watch.faults.join("\n")).toMatch(expected);
  watch.faults.splice(0);
  await page.goto(page.url().replace("127.0.0.1", "localhost"));
  expect(watch.faults.splice(0).join("\n")).toMatch(/request to another host/);
});
