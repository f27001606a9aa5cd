// What the rows of accounts and of creators have in common: gains of the window, and their days.

import { ApiProblem, api, unwrap } from "../api/client.ts";
import type { Page } from "../api/pages.ts";
import type { components } from "../api/schema.d.ts";
import type { RecordMetric } from "../state/metrics.ts";
import { MAX_SERIES_DAYS, type Range, rangeDays, type View, windowParameters } from "../state/view.ts";

type WindowMeta = components["schemas"]["WindowMeta"];

export interface Gains {
  views: number;
  likes: number;
  comments: number;
  shares: number;
  engagement: number;
  followers: number;
}

export interface GainColumns {
  gains: Gains | null;
  /** Only rankings have them. */
  engagement_rate: number | null;
  new_posts: number | null;
  change_percent: number | null;
  /** In the period before, of the metric that ranks. */
  previous: number | null;
  series: readonly (number | null)[] | null;
  /** Position in the series of the day that is not over; -1 without. */
  today: number;
}

export interface GainPage<Row, Order> extends Page<Row> {
  /** How the API sorted it. */
  order: Order;
  /** The days of the gains; null if there are none. */
  meta: WindowMeta | null;
  /** Why the gains are not there. */
  problem: ApiProblem | null;
}

/** What accounts gained in the window of a view. */
export function fetchAccountGains(signal: AbortSignal) {
  return ({ range }: View, account_ids: string[]) =>
    unwrap(
      api.GET("/accounts/metrics", {
        params: { query: { ...windowParameters(range), account_ids } },
        signal,
      }),
    );
}

export function fetchCreatorGains(signal: AbortSignal) {
  return ({ range }: View, creator_ids: string[]) =>
    unwrap(
      api.GET("/creators/metrics", {
        params: { query: { ...windowParameters(range), creator_ids } },
        signal,
      }),
    );
}

interface SeriesOfRows {
  series: Readonly<Record<string, readonly (number | null)[]>>;
  today: number;
}

const NO_SERIES: SeriesOfRows = { series: {}, today: -1 };

type SeriesResponse = Promise<{
  data: SeriesOfRows["series"];
  meta: { dates: string[]; complete_through: string };
}>;

/** Series for sparklines. Their window is shorter than that of rankings: without them, the table has none. */
export async function seriesOrNone(
  range: Range,
  ids: readonly string[],
  request: () => SeriesResponse,
): Promise<SeriesOfRows> {
  if (ids.length === 0 || rangeDays(range) > MAX_SERIES_DAYS) return NO_SERIES;
  return request().then(
    ({ data, meta }) => ({
      series: data,
      today: meta.dates.findIndex((date) => date > meta.complete_through),
    }),
    () => NO_SERIES,
  );
}

interface Ranked {
  id: string;
  metrics: Record<RecordMetric, number | null> & Gains;
  previous: Record<RecordMetric, number | null>;
  change_percent: number | null;
}

export function rankedColumns(
  { id, metrics, previous, change_percent }: Ranked,
  metric: RecordMetric,
  { series, today }: SeriesOfRows,
): GainColumns {
  const { engagement_rate, new_posts } = metrics;
  return {
    gains: metrics,
    engagement_rate,
    new_posts,
    change_percent,
    previous: previous[metric],
    today,
    series: series[id] ?? null,
  };
}

/** The columns of listed records, by id. While ClickHouse is down, the list shows without gains. */
export async function listedColumns(
  metrics: Promise<{ data: Record<string, Gains | null>; meta: WindowMeta }>,
  series: Promise<SeriesOfRows>,
): Promise<Pick<GainPage<never, never>, "meta" | "problem"> & { columnsOf: (id: string) => GainColumns }> {
  const [gains, days] = await Promise.all([metrics.catch(ApiProblem.from), series]);
  const [found, problem] = gains instanceof ApiProblem ? [null, gains] : [gains, null];
  const columnsOf = (id: string): GainColumns => ({
    gains: found?.data[id] ?? null,
    engagement_rate: null,
    new_posts: null,
    change_percent: null,
    previous: null,
    today: days.today,
    series: days.series[id] ?? null,
  });
  return { columnsOf, meta: found?.meta ?? null, problem };
}
