// Every number on a page is one that the API answers, and in short form it has a title with all digits.

import { change, compact, exact, gain, rate, times } from "../src/format.ts";
import type { Dashboard } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, test } from "./fixtures.ts";

/** A piece of text on the page, with the title that is nearest to it. */
interface Shown {
  text: string;
  title: string | null;
}

/** All texts of the page besides names, captions, controls and the axes of charts. */
function shownTexts(dashboard: Dashboard): Promise<Shown[]> {
  return dashboard.main.evaluate((main) => {
    const excluded =
      "h1, h2, a, svg, select, label, pre, code, time, [dir=auto], [role=alert], [aria-hidden=true], .controls";
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    const shown: { text: string; title: string | null }[] = [];
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      const text = walker.currentNode.textContent ?? "";
      if (!element || element.closest(excluded) || !/\d/.test(text)) continue;
      shown.push({ text, title: element.closest("[title]")?.getAttribute("title") ?? null });
    }
    return shown;
  });
}

const DATE = /\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)( \d{4})?(, \d{2}:\d{2} UTC)?/g;
const USERNAME = /@[\w.]+/g;
const NUMBER = /[+−]?\d+(\u2009\d{3})*(\.\d+)?[kMBT]?(\u2009%)?/g;

function numbersIn(value: unknown): number[] {
  if (typeof value === "number") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(numbersIn) : [];
}

/** The numbers in the API's answers to what the page has requested, asked again. */
async function fetchAnswers(urls: ReadonlySet<string>, key: string): Promise<number[]> {
  const answers = await Promise.all(
    [...urls].map(
      async (url) => (await fetch(url, { headers: { Authorization: `Bearer ${key}` } })).json() as unknown,
    ),
  );
  return answers.flatMap(numbersIn);
}

async function expectNumbersOfApi(dashboard: Dashboard, world: World, path: string): Promise<void> {
  const urls = new Set<string>();
  dashboard.page.on(
    "request",
    (request) =>
      request.method() === "GET" &&
      request.url().startsWith(world.baseUrl) &&
      !request.url().endsWith("/events/stream") &&
      urls.add(request.url()),
  );
  await dashboard.open(path, world.keys.write);
  const numbers = await fetchAnswers(urls, world.keys.write);
  const full = new Set(
    numbers.flatMap((number) => [
      exact(number),
      `+${exact(number)}`,
      rate(number),
      change(number).replace("×", ""),
      times(number).replace(/\D+$/, ""),
    ]),
  );
  const short = new Map(
    numbers.flatMap((number) =>
      [compact(number), gain(number)].map((text) => [`${text} ${exact(number)}`, number]),
    ),
  );
  const texts = await shownTexts(dashboard);
  expect(texts.length).toBeGreaterThan(10);
  const unknown = texts.filter(({ text, title }) =>
    (text.replace(DATE, "").replace(USERNAME, "").match(NUMBER) ?? []).some(
      (number) => !full.has(number.trim()) && !short.has(`${number.trim()} ${title ?? ""}`),
    ),
  );
  expect(unknown, `${path} shows numbers of the API only`).toEqual([]);
}

test("every number on the overview is the API's", async ({ dashboard, world }) => {
  for (const path of ["/", "/?period=7d&platform=tiktok&compare=none", "/?metric=likes&include_today=true"]) {
    await expectNumbersOfApi(dashboard, world, path);
  }
});

test("every number on pages of accounts and creators is the API's", async ({ dashboard, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  const query = { limit: 1, period: "30d" } as const;
  const [accounts, creators] = await Promise.all([
    api.GET("/accounts/top", { params: { query } }),
    api.GET("/creators/top", { params: { query } }),
  ]);
  for (const path of [`/accounts/${accounts.data?.data[0]?.id}`, `/creators/${creators.data?.data[0]?.id}`]) {
    await expectNumbersOfApi(dashboard, world, path);
    await expectNumbersOfApi(dashboard, world, `${path}?period=90d`);
  }
});

test("the metrics of the overview stand under their names", async ({ dashboard, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  await dashboard.open("/?period=30d", world.keys.write);
  const { data: overview } = await api.GET("/overview", {
    params: { query: { period: "30d", include_today: false } },
  });
  const metrics = {
    Views: overview?.data.views,
    Engagement: overview?.data.engagement,
    "Engagement rate": overview?.data.engagement_rate,
    "Followers gained": overview?.data.followers_gained,
    "New posts": overview?.data.new_posts,
  };
  for (const [name, metric] of Object.entries(metrics)) {
    const tile = dashboard.tile(name);
    await expect(tile.locator(`[title="${exact(metric?.current)}"]`), name).toHaveCount(1);
    await expect(tile, name).toContainText(change(metric?.change_percent));
  }
});

test("the rankings of the overview are the API's, in its order", async ({ dashboard, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  const query = { period: "30d", include_today: false, metric: "views", limit: 20 } as const;
  await dashboard.open("/?period=30d", world.keys.write);
  const [content, accounts, creators] = await Promise.all([
    api.GET("/content/top", { params: { query } }),
    api.GET("/accounts/top", { params: { query } }),
    api.GET("/creators/top", { params: { query } }),
  ]);
  const rankings: [string, { id: string; metrics: { views: number | null } }[]][] = [
    ["Top content", content.data?.data ?? []],
    ["Top accounts", accounts.data?.data ?? []],
    ["Top creators", creators.data?.data ?? []],
  ];
  for (const [name, records] of rankings) {
    const { rows } = dashboard.table(name);
    const count = await rows.count();
    expect(count).toBeGreaterThanOrEqual(Math.min(5, records.length));
    for (const [position, { id, metrics }] of records.slice(0, count).entries()) {
      const row = rows.nth(position);
      await expect(row.getByRole("link").first()).toHaveAttribute("href", new RegExp(id));
      await expect(row.locator(`[title="${exact(metrics.views)}"]`)).toHaveCount(1);
    }
  }
});

test("the chart's table has the days of the API", async ({ dashboard, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  await dashboard.open("/?period=90d&compare=none&platform=tiktok", world.keys.write);
  const { data } = await api.GET("/analytics/timeseries", {
    params: { query: { period: "90d", include_today: false, platform: "tiktok" } },
  });
  const days = data?.data.map(({ observed, views }) => (observed > 0 ? exact(views) : "–"));
  expect(days).toContain("–");
  const { rows } = await dashboard.openChartTable();
  await expect(rows.locator("td:nth-child(2)")).toHaveText(days ?? []);
});
