// What did far better than usual, and what is usual.

import { exact, times } from "../src/format.ts";
import { PATHS, Table } from "./dashboard.ts";
import { apiClient } from "./environment.ts";
import { expect, expectAccessible, test } from "./fixtures.ts";

test("the overview shows the breakouts of the API, in its order", async ({ dashboard, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  await dashboard.open(PATHS.Overview, world.keys.write);
  const query = { period: "30d", include_today: false } as const;
  const { data: overview } = await api.GET("/overview", { params: { query } });
  const posted_after = overview?.meta.start_date ?? "";
  const { data } = await api.GET("/content/breakouts", { params: { query: { limit: 7, posted_after } } });
  expect(data?.data.length).toBeGreaterThan(0);
  const { rows } = dashboard.table("Breakouts");
  await expect(rows).toHaveCount(data?.data.length ?? 0);
  for (const [position, { id, actual, multiple }] of (data?.data ?? []).entries()) {
    await expect(rows.nth(position).getByRole("link").first()).toHaveAttribute("href", new RegExp(id));
    await expect(rows.nth(position).locator(`[title="${exact(actual)}"]`)).toHaveCount(1);
    await expect(rows.nth(position)).toContainText(times(multiple));
  }
});

test("a post shows its views by age beside what its account usually has", async ({
  dashboard,
  page,
  world,
}) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  const { data: breakouts } = await api.GET("/content/breakouts", { params: { query: { limit: 1 } } });
  const post = breakouts?.data[0];
  await dashboard.open(`/content/${post?.id}`, world.keys.write);
  const card = dashboard.card("Views by age");
  await card.getByText("Table", { exact: true }).click();
  const rows = await new Table(card).read();
  const ages = rows.map((row) => Number(row.get("Age in days")?.text));
  const [path, query] = [{ video_id: post?.id ?? "" }, { ages }];
  const { data: curve } = await api.GET("/content/{video_id}/ages", { params: { path, query } });
  expect(rows.map((row) => row.get("This post")?.text)).toEqual(curve?.data.map(({ views }) => exact(views)));
  const account = {
    path: { account_id: post?.account_id ?? "" },
    query: { ages, media_type: post?.media_type ?? "" },
  };
  const { data: usual } = await api.GET("/accounts/{account_id}/benchmarks", { params: account });
  expect(rows.map((row) => row.get("Median")?.text)).toEqual(
    usual?.data.map(({ views }) => exact(views.p50)),
  );
  await expectAccessible(page, "a post with its curve");
});

test("an account shows what its posts usually reach", async ({ dashboard, world }) => {
  const api = apiClient({ baseUrl: world.baseUrl, key: world.keys.write });
  const { data: breakouts } = await api.GET("/content/breakouts", { params: { query: { limit: 1 } } });
  const account_id = breakouts?.data[0]?.account_id ?? "";
  await dashboard.open(`/accounts/${account_id}`, world.keys.write);
  const rows = await dashboard.table("What its posts usually reach").read();
  const ages = rows.map((row) => Number(row.get("Age in days")?.text));
  const { data } = await api.GET("/accounts/{account_id}/benchmarks", {
    params: { path: { account_id }, query: { ages } },
  });
  expect(rows.map((row) => row.get("Views")?.title)).toEqual(data?.data.map(({ views }) => exact(views.p50)));
  expect(rows.map((row) => row.get("Posts")?.text)).toEqual(data?.data.map(({ sample }) => exact(sample)));
});
