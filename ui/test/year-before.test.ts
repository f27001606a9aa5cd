import assert from "node:assert/strict";
import { test } from "node:test";

import { changePercent, daysBeside, entriesBeside, totalsBeside } from "../src/loads/year-before.ts";
import { addDays, yearBefore } from "../src/state/range.ts";
import { parseView, type View } from "../src/state/view.ts";

const VIEW = parseView("/", "period=custom&start_date=2024-02-28&end_date=2024-02-29&compare=year");

test("the year before has the same days", () => {
  const { start, end } = yearBefore(VIEW.range);
  assert.deepEqual([start, end], ["2023-02-28", "2023-02-28"]);
});

test("a change has one decimal, and none from nothing", () => {
  assert.equal(changePercent(110, 100), 10);
  assert.equal(changePercent(-50, -100), 50);
  assert.equal(changePercent(1_001, 3), 33_266.7);
  assert.equal(changePercent(2_000.5, 2_000), 0);
  assert.equal(changePercent(1, 0), null);
  assert.equal(changePercent(null, 5), null);
  assert.equal(changePercent(5, null), null);
});

const metric = (current: number | null) => ({ current, previous: 7, change: 7, change_percent: 7 });
const isYearBefore = ({ range }: View) => range.start?.startsWith("2023") ?? false;

test("metrics are compared with those of the year before", async () => {
  const { data } = await totalsBeside(VIEW, async (view) => ({
    data: { totals: { accounts: 3 }, views: metric(isYearBefore(view) ? 100 : 150), likes: metric(null) },
  }));
  assert.deepEqual(data, {
    totals: { accounts: 3 },
    views: { current: 150, previous: 100, change: 50, change_percent: 50 },
    likes: { current: null, previous: null, change: null, change_percent: null },
  });
});

test("days stand beside those of the year before, as far as there are any", async () => {
  const { data } = await daysBeside(VIEW, async (view) => ({
    data: isYearBefore(view) ? [{ date: "2023-02-28" }] : [{ date: "2024-02-28" }, { date: "2024-02-29" }],
  }));
  assert.deepEqual(data, [{ date: "2024-02-28", previous: { date: "2023-02-28" } }, { date: "2024-02-29" }]);
});

test("days after 29 February stand beside the same ones", async () => {
  const view = parseView("/", "period=custom&start_date=2024-02-01&end_date=2024-03-31&compare=year");
  const { data } = await daysBeside(view, async ({ range }) => {
    const days: { date: string; previous?: { date: string } }[] = [];
    for (let date = range.start ?? ""; date <= (range.end ?? ""); date = addDays(date, 1))
      days.push({ date });
    return { data: days };
  });
  assert.equal(data.length, 60);
  for (const { date, previous } of data)
    assert.equal(previous?.date, date === "2024-02-29" ? undefined : date.replace("2024", "2023"));
});

test("without that comparison, nothing else is asked for", async () => {
  const asked: View[] = [];
  const fetch = async (view: View) => {
    asked.push(view);
    return { data: [] };
  };
  const current = { ...VIEW, compare: "previous" as const };
  await daysBeside(current, fetch);
  assert.deepEqual(asked, [current]);
});

test("entries of a ranking are compared with what they gained a year before", async () => {
  const metrics = {
    views: 150,
    likes: 6,
    comments: 0,
    shares: 0,
    engagement: 6,
    engagement_rate: 0.04,
    followers: -3,
    new_posts: 2,
  };
  const entry = (id: string) => ({ id, metrics, previous: metrics, change_percent: 7 });
  const before = { views: 100, likes: 2, comments: 0, shares: 0, engagement: 2, followers: 3 };
  const asked: string[][] = [];
  const fetch = async (view: View, ids: string[]) => {
    assert.ok(isYearBefore(view));
    asked.push(ids);
    return { data: { a: before, b: null } };
  };
  const changes = async (metric: keyof typeof metrics, view = VIEW) =>
    (await entriesBeside(view, metric, [entry("a"), entry("b")], fetch)).map(
      ({ previous, change_percent }) => [previous[metric], change_percent],
    );
  assert.deepEqual(await changes("views"), [
    [100, 50],
    [null, null],
  ]);
  assert.deepEqual((await changes("engagement_rate"))[0], [0.02, 100]);
  assert.deepEqual((await changes("followers"))[0], [3, -200]);
  assert.deepEqual(asked, Array(3).fill(["a", "b"]));
  // What nothing says, and what is not asked for, stays as the ranking has it.
  assert.deepEqual((await changes("new_posts"))[0], [2, 7]);
  assert.deepEqual((await changes("views", { ...VIEW, compare: "previous" }))[0], [150, 7]);
  assert.equal(asked.length, 3);
});
