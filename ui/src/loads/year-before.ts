// The same days of the year before beside those of a page: the API compares with the period before only.

import type { RecordMetric } from "../state/metrics.ts";
import { dayYearBefore } from "../state/range.ts";
import { ranksChange, type View, yearBefore } from "../state/view.ts";
import type { Gains } from "./gain-rows.ts";

interface Metric {
  current: number | null;
  previous: number | null;
  change: number | null;
  change_percent: number | null;
}

function isMetric(value: unknown): value is Metric {
  return typeof value === "object" && value !== null && "change_percent" in value;
}

/** With one decimal, half away from zero, as the API says it of the period before. */
export function changePercent(current: number | null, previous: number | null): number | null {
  if (current === null || !previous) return null;
  const tenths = ((current - previous) / Math.abs(previous)) * 1_000;
  return (Math.sign(tenths) * Math.round(Math.abs(tenths))) / 10;
}

function compared(now: Metric, then: unknown): Metric {
  const previous = isMetric(then) ? then.current : null;
  const change = now.current === null || previous === null ? null : now.current - previous;
  return { ...now, previous, change, change_percent: changePercent(now.current, previous) };
}

function ofYearBefore(view: View): View {
  return { ...view, compare: null, range: yearBefore(view.range) };
}

/** Metrics with their change since the year before, if that is what the page compares with. */
export async function totalsBeside<T extends { data: object }>(
  view: View,
  fetchTotals: (view: View) => Promise<T>,
): Promise<T> {
  if (view.compare !== "year") return fetchTotals(view);
  const [now, then] = await Promise.all([fetchTotals(view), fetchTotals(ofYearBefore(view))]);
  const before = then.data as Readonly<Record<string, unknown>>;
  const data = Object.entries(now.data).map(([name, value]) => [
    name,
    isMetric(value) ? compared(value, before[name]) : value,
  ]);
  return { ...now, data: Object.fromEntries(data) };
}

/** Days with the same ones of the year before. */
export async function daysBeside<Day extends { date: string }, T extends { data: Day[] }>(
  view: View,
  fetchDays: (view: View) => Promise<T>,
): Promise<T> {
  if (view.compare !== "year") return fetchDays(view);
  const [now, then] = await Promise.all([fetchDays(view), fetchDays(ofYearBefore(view))]);
  const before = new Map(then.data.map((day) => [day.date, day]));
  const data = now.data.map((day) => {
    const previous = before.get(dayYearBefore(day.date));
    return previous ? { ...day, previous } : day;
  });
  return { ...now, data };
}

interface RankedEntry {
  id: string;
  metrics: Readonly<Record<RecordMetric, number | null>>;
  previous: Readonly<Record<RecordMetric, number | null>>;
  change_percent: number | null;
}

function gainOf(gains: Gains | null | undefined, metric: RecordMetric): number | null {
  if (!gains || metric === "new_posts") return null;
  if (metric === "engagement_rate") return gains.views > 0 ? gains.engagement / gains.views : null;
  return gains[metric];
}

/** Entries of a ranking with what they gained a year before, if that is what the page compares with. */
export async function entriesBeside<Entry extends RankedEntry>(
  view: View,
  metric: RecordMetric,
  entries: Entry[],
  fetchGains: (view: View, ids: string[]) => Promise<{ data: Readonly<Record<string, Gains | null>> }>,
): Promise<Entry[]> {
  if (view.compare !== "year" || !ranksChange(view, metric) || entries.length === 0) return entries;
  const then = await fetchGains(
    ofYearBefore(view),
    entries.map(({ id }) => id),
  );
  return entries.map((entry) => {
    const before = gainOf(then.data[entry.id], metric);
    return {
      ...entry,
      previous: { ...entry.previous, [metric]: before },
      change_percent: changePercent(entry.metrics[metric], before),
    };
  });
}
