// What the numbers say is true: whole days, gaps where nothing was observed, and what a gain covers.

import type { Page } from "@playwright/test";

import { day as dayName } from "../src/format.ts";
import { type Dashboard, PATHS, Table } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, test } from "./fixtures.ts";

/** Changes the answers to some requests. */
async function changeAnswers(page: Page, url: RegExp, change: (body: Body) => unknown): Promise<void> {
  await page.route(url, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: change((await response.json()) as Body) });
  });
}

// biome-ignore lint/suspicious/noExplicitAny: any answer of the API
type Body = any;

function parameters(url: string): URLSearchParams {
  return new URL(url).searchParams;
}

async function firstAccount({ baseUrl, keys }: World): Promise<string> {
  const { data } = await apiClient({ baseUrl, key: keys.read }).GET("/accounts", {
    params: { query: { limit: 1, status: ["active"] } },
  });
  return data?.data[0]?.id ?? "";
}

async function firstPost({ baseUrl, keys }: World): Promise<string> {
  const { data } = await apiClient({ baseUrl, key: keys.read }).GET("/content/top", {
    params: { query: { limit: 1 } },
  });
  return data?.data[0]?.id ?? "";
}

test("whole days are compared, and today with nothing", async ({ dashboard, page, world }) => {
  const requests: URLSearchParams[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/v2/overview")) requests.push(parameters(request.url()));
  });
  await dashboard.open(PATHS.Overview, world.keys.read);
  expect(requests.at(-1)?.get("include_today")).toBe("false");
  const changes = dashboard.table("Top accounts").headings.filter({ hasText: "Change" });
  await expect(changes).toHaveCount(1);
  await expect(dashboard.tile("Views").getByTitle(/in the period before$/)).toHaveCount(1);
  await page.getByRole("checkbox", { name: "with today" }).check();
  await expect(page).toHaveURL(/include_today=true/);
  await dashboard.settled();
  expect(requests.at(-1)?.get("include_today")).toBe(null);
  await expect(dashboard.tile("Views")).toContainText("so far");
  await expect(dashboard.tile("Views").getByTitle(/in the period before$/)).toHaveCount(0);
  await expect(changes).toHaveCount(0);
});

test("days of several records without an observation are asked for as gaps", async ({
  dashboard,
  page,
  world,
}) => {
  const requests: string[] = [];
  page.on("request", (request) => {
    if (/\/v2\/(accounts|creators|content)\/timeseries/.test(request.url())) requests.push(request.url());
  });
  for (const path of [PATHS.Accounts, PATHS.Creators, PATHS.Content])
    await dashboard.open(path, world.keys.read);
  // Those of posts follow the rows.
  await expect.poll(() => requests).toHaveLength(3);
  for (const url of requests) expect(parameters(url).get("unobserved"), url).toBe("null");
});

test("followers have no line over days without an observation", async ({ dashboard, page, world }) => {
  await changeAnswers(page, /\/v2\/analytics\/timeseries/, ({ data, ...rest }) => ({
    ...rest,
    data: data.map((day: object, position: number) => (position === 10 ? { ...day, observed: 0 } : day)),
  }));
  await dashboard.open(`/accounts/${await firstAccount(world)}`, world.keys.read);
  const card = dashboard.card("Followers at the end of each day");
  await card.getByText("Table", { exact: true }).click();
  const rows = await new Table(card).read();
  expect(rows[10]?.get("Followers")?.text).toBe("–");
  expect(rows[11]?.get("Followers")?.text).not.toBe("–");
  await expect(dashboard.card("Views per day")).toContainText("after a gap holds what was gained since");
});

test("a gain of several days says since when it was gained", async ({ dashboard, page, world }) => {
  let since = "";
  await changeAnswers(page, /\/v2\/videos\/.*values=both/, ({ data, ...rest }) => {
    since = data.at(-5).date;
    const days = data.map((day: object, position: number) => {
      const ago = data.length - 1 - position;
      if (ago === 0) return { ...day, observed: true, view_count: 4_000, since };
      return ago < 4
        ? { ...day, observed: false, view_count: null, since: null }
        : { ...day, observed: true, view_count: 900, since: null };
    });
    return { ...rest, data: days };
  });
  await dashboard.open(`/content/${await firstPost(world)}`, world.keys.read);
  const slider = dashboard.card("Views per day").getByRole("slider");
  await slider.focus();
  await page.keyboard.press("End");
  const day = `${Number(since.slice(8))} `;
  await expect(slider).toHaveAttribute("aria-valuetext", new RegExp(`: Views 4\u2009000 since ${day}`));
  await expect(dashboard.tooltip).toContainText(`since ${day}`);
  // A step of four days, each a quarter as high.
  const heights = await dashboard
    .card("Views per day")
    .locator("svg path:not([class])")
    .first()
    .evaluate((line) => {
      const path = line as SVGPathElement;
      const points = [1, 0.97, 0.94].map((share) => path.getPointAtLength(path.getTotalLength() * share));
      return points.map(({ y }) => Math.round(y));
    });
  expect(new Set(heights).size).toBe(1);
});

test("what of the accounts is not updating is said", async ({ dashboard, page, world }) => {
  await changeAnswers(page, /\/v2\/tracking$/, ({ data }) => ({
    data: {
      ...data,
      accounts: {
        ...data.accounts,
        active: 0,
        pending: 0,
        failing: 0,
        unavailable: 0,
        unsupported: 0,
        paused: 6,
        paused_by_creator: 0,
      },
    },
  }));
  await dashboard.open(PATHS.Overview, world.keys.read);
  await expect(dashboard.main).toContainText("6 paused");
  await expect(dashboard.main).not.toContainText("all updating");
  await dashboard.go("Tracking");
  await expect(dashboard.card("Now")).toContainText("6 accounts are paused.");
});

test("a loss is no growth, whatever its percentage", async ({ dashboard, page, world }) => {
  await changeAnswers(page, /\/v2\/accounts\/top/, ({ data: [first, second, ...others], ...rest }) => {
    const changed = (account: Body, views: number, before: number, change_percent: number | null) => ({
      ...account,
      metrics: { ...account.metrics, views },
      previous: { ...account.previous, views: before },
      change_percent,
    });
    // Twice the loss is +100 % of it, and everything is more than nothing.
    return { ...rest, data: [changed(first, -200, -100, 100), changed(second, 500, 0, null), ...others] };
  });
  await dashboard.open(PATHS.Overview, world.keys.read);
  const { rows } = dashboard.table("Top accounts");
  const change = (row: number) => rows.nth(row).locator("td").last();
  await expect(change(0)).toHaveText("–");
  await expect(change(1)).toHaveText("new");
  const colours = [0, 1].map((row) =>
    change(row)
      .locator("span")
      .evaluate((text) => getComputedStyle(text).color),
  );
  const [ofLoss, ofGain] = await Promise.all(colours);
  expect(ofLoss).not.toBe(ofGain);
});

test("a range before any number has dashes", async ({ dashboard, world }) => {
  await dashboard.open("/?period=custom&start_date=2024-01-01&end_date=2024-02-01", world.keys.read);
  await expect(dashboard.tile("Views")).toContainText("–");
  await expect(dashboard.tile("Followers gained")).toContainText("–");
  await expect(dashboard.main).toContainText("Nothing is known of these days");
});

test("breakouts are of the page’s range, and say so", async ({ dashboard, page, world }) => {
  const requestOf = async (act: () => Promise<unknown>) =>
    parameters((await Promise.all([page.waitForRequest(/\/content\/breakouts/), act()]))[0].url());
  const query = await requestOf(() => dashboard.open(PATHS.Overview, world.keys.read));
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  const window = { period: "30d", include_today: false } as const;
  const { data } = await api.GET("/overview", { params: { query: window } });
  expect(query.get("posted_after")).toBe(data?.meta.start_date);
  await expect(dashboard.card("Breakouts")).toContainText(
    /of posts since \d+ \w+ \d{4}, by views after 7 days/,
  );
  const shorter = await requestOf(() => dashboard.choosePeriod("7d"));
  expect((shorter.get("posted_after") ?? "") > (query.get("posted_after") ?? "")).toBe(true);
  await expect(dashboard.card("Breakouts")).toContainText("by views after 1 day");
});

const LONG_RANGE = "period=custom&start_date=2025-01-01&end_date=2025-12-31";

/** Requests of days of several records. */
async function seriesRequests(dashboard: Dashboard, path: string, key: string): Promise<string[]> {
  const requests: string[] = [];
  dashboard.page.on("request", (request) => {
    if (/\/v2\/(accounts|creators|content)\/timeseries/.test(request.url())) requests.push(request.url());
  });
  await dashboard.open(path, key);
  return requests;
}

test("a range of a year loads without the days of several records", async ({ dashboard, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  const creators = await api.GET("/creators", { params: { query: { limit: 2 } } });
  const ids = creators.data?.data.map(({ id }) => id) ?? [];
  for (const path of [
    `${PATHS.Accounts}?${LONG_RANGE}`,
    `${PATHS.Creators}?${LONG_RANGE}&creators=${ids.join()}`,
    `${PATHS.Content}?${LONG_RANGE}`,
    `/creators/${ids[0]}?${LONG_RANGE}`,
  ]) {
    // An answer of 422 is an error of the console, which fails the test.
    expect(await seriesRequests(dashboard, path, world.keys.read), path).toEqual([]);
  }
  await expect(dashboard.main).toContainText("ranges of at most 92 days");
});

test("days that are not over cannot be chosen", async ({ dashboard, page, world }) => {
  await dashboard.open("/?period=custom&start_date=2999-01-01&end_date=2999-02-01", world.keys.read);
  await expect(page.getByRole("combobox", { name: "Range" })).toHaveValue("30d");
  await page.getByRole("combobox", { name: "Range" }).selectOption("custom");
  const today = await page.evaluate(() => new Date().toISOString().slice(0, 10));
  await page.getByLabel("First day (UTC)").fill("2999-01-01");
  await page.getByLabel("Last day (UTC)").fill("2999-02-01");
  await expect(dashboard.main).toContainText("Later days have no numbers yet");
  await expect(page.getByRole("button", { name: "Show", exact: true })).toBeDisabled();
  await page.getByText("Calendar", { exact: true }).click();
  const day = (date: string) => page.getByRole("button", { name: dayName(date), exact: true });
  await expect(day(today)).toBeEnabled();
  await expect(page.getByRole("button", { name: "Next month" })).toBeDisabled();
});
