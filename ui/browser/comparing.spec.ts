// What numbers are compared with: the days of a year before, in weeks and months.

import { change, exact } from "../src/format.ts";
import { PATHS } from "./dashboard.ts";
import { apiClient } from "./environment.ts";
import { expect, test } from "./fixtures.ts";

const RANGE = "period=custom&start_date=2026-10-10&end_date=2026-11-05";

test("the same days of last year stand beside those of a page", async ({ dashboard, page, world }) => {
  // The history of the tests is younger than a year.
  const asked: string[] = [];
  await page.route(/\/v2\/(overview|analytics\/timeseries)\?/, async (route) => {
    const url = new URL(route.request().url());
    const isBefore = url.searchParams.get("start_date") === "2025-10-10";
    asked.push(`${url.pathname} ${url.searchParams.get("end_date")} ${url.searchParams.get("compare")}`);
    if (isBefore) {
      url.searchParams.set("start_date", "2026-10-10");
      url.searchParams.set("end_date", "2026-11-05");
    }
    const response = await route.fetch({ url: url.href });
    const { data, ...rest } = await response.json();
    const changed = data.views ? { ...data, views: { ...data.views, current: isBefore ? 100 : 250 } } : data;
    await route.fulfill({ response, json: { ...rest, data: changed } });
  });
  const gained = new Map<string, [id: string, views: number]>();
  const compared = new Map<string, string[]>();
  await page.route(/\/v2\/(accounts|creators)\/(top|metrics)\?/, async (route) => {
    const url = new URL(route.request().url());
    const [, , records = "", question] = url.pathname.split("/");
    if (question === "top") {
      const response = await route.fetch();
      const { data, ...rest } = await response.json();
      gained.set(records, [data[0].id, data[0].metrics.views]);
      return route.fulfill({ response, json: { ...rest, data } });
    }
    expect(url.searchParams.get("start_date")).toBe("2025-10-10");
    expect(url.searchParams.get("end_date")).toBe("2025-11-05");
    const ids =
      url.searchParams.get(records === "accounts" ? "account_ids" : "creator_ids")?.split(",") ?? [];
    compared.set(records, ids);
    const gains = { views: 5, plays: 5, likes: 0, comments: 0, shares: 0, engagement: 0, followers: 0 };
    return route.fulfill({ json: { data: Object.fromEntries(ids.map((id) => [id, gains])), meta: {} } });
  });
  await dashboard.open(`/?${RANGE}`, world.keys.read);
  asked.length = 0;
  await page.getByRole("combobox", { name: "Compare with" }).selectOption("year");
  await expect(page).toHaveURL(/compare=year/);
  await dashboard.settled();
  await expect(dashboard.tile("Views")).toContainText(change(150));
  await expect(dashboard.tile("Views").getByTitle("100 in the same days a year before")).toHaveCount(1);
  expect(asked.toSorted()).toEqual([
    "/v2/analytics/timeseries 2025-11-05 null",
    "/v2/analytics/timeseries 2026-11-05 null",
    "/v2/overview 2025-11-05 null",
    "/v2/overview 2026-11-05 null",
  ]);
  // Rankings of the API know the period before only.
  for (const [name, path] of [
    ["Top accounts", "accounts"],
    ["Top creators", "creators"],
  ] as const) {
    const [row] = await dashboard.table(name).read();
    expect(row?.get("Change")?.title).toBe("5 in the same days a year before");
    const [id, views] = gained.get(path) ?? [];
    expect(row?.get("Views")?.title).toBe(exact(views));
    expect(row?.get("Change")?.text).toBe(change(((views ?? 0) - 5) * 20));
    expect(compared.get(path)).toContain(id);
  }
  await page.getByRole("button", { name: /^New posts/ }).click();
  await dashboard.settled();
  await expect(dashboard.table("Top accounts").headings.filter({ hasText: "Change" })).toHaveCount(0);
});

test("a chart has a value for each week or month", async ({ dashboard, page, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.read });
  await dashboard.open(PATHS.Overview, world.keys.read);
  for (const granularity of ["week", "month"] as const) {
    await page.getByRole("combobox", { name: "Granularity" }).selectOption(granularity);
    await expect(page).toHaveURL(new RegExp(`granularity=${granularity}`));
    await dashboard.settled();
    const query = { period: "30d", include_today: false, granularity } as const;
    const { data } = await api.GET("/analytics/timeseries", { params: { query } });
    await expect(dashboard.card(`Views per ${granularity}`)).toBeVisible();
    const slider = dashboard.main.getByRole("slider").first();
    await expect(slider).toHaveAttribute("aria-valuemax", String((data?.data.length ?? 0) - 1));
    await slider.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    const bucket = data?.data[1];
    await expect(slider).toHaveAttribute(
      "aria-valuetext",
      new RegExp(`–.*: Total ${bucket?.observed ? exact(bucket.views) : "–"}`),
    );
  }
});

for (const [path, name, kind, metrics] of [
  [PATHS.Accounts, "Accounts", "accounts", "/accounts/metrics"],
  [PATHS.Content, "Content", "posts", "/videos/metrics"],
] as const) {
  test(`${kind} are compared with their figures side by side`, async ({ dashboard, page, world }) => {
    await dashboard.open(path, world.keys.read);
    const boxes = dashboard.table(name).rows.getByRole("checkbox");
    await boxes.nth(0).check();
    await expect(page.getByRole("button", { name: "Compare", exact: true })).toBeDisabled();
    await boxes.nth(1).check();
    await page.getByRole("button", { name: "Compare", exact: true }).click();
    await expect(page).toHaveURL(new RegExp(`${kind}=`));
    await dashboard.settled();
    const views = async () =>
      (await dashboard.table("Figures of the comparison").read()).map((row) => row.get("Views")?.title);
    const ids = new URL(page.url()).searchParams.get(kind)?.split(",") ?? [];
    expect(ids).toHaveLength(2);
    const url = new URL(`/v2${metrics}`, world.baseUrl);
    url.searchParams.set(kind === "posts" ? "video_ids" : "account_ids", ids.join());
    url.searchParams.set("include_today", "false");
    const answer = await fetch(url, { headers: { Authorization: `Bearer ${world.keys.read}` } });
    const { data } = (await answer.json()) as { data: Record<string, { views: number }> };
    // Figures may come after the chart.
    await expect.poll(views).toEqual(ids.map((id) => exact(data[id]?.views)));
    await page.reload();
    await dashboard.settled();
    await expect(dashboard.table("Figures of the comparison").rows).toHaveCount(2);
    await page.getByRole("button", { name: "End comparison" }).click();
    await expect(page).not.toHaveURL(new RegExp(`${kind}=`));
    await expect(dashboard.table("Figures of the comparison").rows).toHaveCount(0);
  });
}
