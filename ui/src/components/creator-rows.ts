// The rows of the creators' table. Sorted by a gain: the ranking, which has at most 25. By name, or searched: the list, and the gains
// of its rows. Three requests a page.

import { ApiProblem, api, unwrap } from "../api/client.ts";
import { type View, windowParameters } from "../state/view.ts";
import { FIGURES, type Figure, seriesFigure } from "./figures.ts";
import { type GainColumns, type GainPage, type GainSort, NO_SERIES, seriesOrNone } from "./gain-rows.ts";

/** The longest ranking of creators that the API returns. */
export const MAX_RANKED = 25;
const PAGE_SIZE = 50;
/** The longest page of a list. */
const MAX_LISTED = 200;
const LIST_SORTS = ["name", "added_at"] as const;

export interface CreatorRow extends GainColumns {
  id: string;
  name: string;
  account_count: number;
  follower_count: number;
  /** Null where the response does not say. */
  is_active: boolean | null;
}

type CreatorSort = GainSort<(typeof LIST_SORTS)[number]>;
export type CreatorPage = GainPage<CreatorRow, CreatorSort>;

export function creatorSort({ filters }: View): CreatorSort {
  const canRank = !filters.has("q");
  const text = filters.get("sort") ?? (canRank ? "-views" : "name");
  const name = text.replace("-", "");
  const order_by = LIST_SORTS.find((sort) => sort === name) ?? "name";
  return {
    gain: canRank ? (FIGURES.find((gain) => gain === name) ?? null) : null,
    order_by,
    order_direction: text.startsWith("-") && order_by === name ? "desc" : "asc",
  };
}

async function fetchSeries(view: View, creator_ids: string[], signal: AbortSignal) {
  const query = {
    ...windowParameters(view.range),
    creator_ids,
    metric: seriesFigure(creatorSort(view).gain),
  };
  return seriesOrNone(unwrap(api.GET("/creators/timeseries", { params: { query }, signal })));
}

async function fetchRanked(
  view: View,
  sort: CreatorSort,
  metric: Figure,
  signal: AbortSignal,
): Promise<CreatorPage> {
  const query = { ...windowParameters(view.range), metric, limit: MAX_RANKED };
  const paused = { is_active: false, limit: MAX_LISTED };
  const [{ data, meta }, notActive] = await Promise.all([
    unwrap(api.GET("/creators/top", { params: { query }, signal })),
    unwrap(api.GET("/creators", { params: { query: paused }, signal })),
  ]);
  const { series, today } =
    data.length > 0
      ? await fetchSeries(
          view,
          data.map(({ id }) => id),
          signal,
        )
      : NO_SERIES;
  const pausedIds = new Set(notActive.data.map(({ id }) => id));
  const otherwise = notActive.pagination.next_cursor ? null : true;
  const rows = data.map((creator) => ({
    ...creator,
    is_active: pausedIds.has(creator.id) ? false : otherwise,
    gains: creator.metrics,
    engagement_rate: creator.metrics.engagement_rate,
    new_posts: creator.metrics.new_posts,
    today,
    series: series[creator.id] ?? null,
  }));
  return { rows, next: null, sort, meta, problem: null };
}

async function fetchListed(
  view: View,
  sort: CreatorSort,
  cursor: string | null,
  signal: AbortSignal,
): Promise<CreatorPage> {
  const { order_by, order_direction } = sort;
  const q = view.filters.get("q");
  const query = {
    order_by,
    order_direction,
    limit: PAGE_SIZE,
    ...(q ? { q } : {}),
    ...(cursor ? { cursor } : {}),
  };
  const { data, pagination } = await unwrap(api.GET("/creators", { params: { query }, signal }));
  if (data.length === 0) return { rows: [], next: null, sort, meta: null, problem: null };
  const creator_ids = data.map(({ id }) => id);
  const [metrics, { series, today }] = await Promise.all([
    unwrap(
      api.GET("/creators/metrics", {
        params: { query: { ...windowParameters(view.range), creator_ids } },
        signal,
      }),
    ).catch(ApiProblem.from),
    fetchSeries(view, creator_ids, signal),
  ]);
  signal.throwIfAborted();
  // While ClickHouse is down, the list shows without gains.
  const [gains, problem] = metrics instanceof ApiProblem ? [null, metrics] : [metrics, null];
  const rows = data.map((creator) => ({
    ...creator,
    account_count: creator.accounts_summary.total,
    follower_count: creator.accounts_summary.total_followers,
    gains: gains?.data[creator.id] ?? null,
    engagement_rate: null,
    new_posts: null,
    change_percent: null,
    today,
    series: series[creator.id] ?? null,
  }));
  return { rows, next: pagination.next_cursor ?? null, sort, meta: gains?.meta ?? null, problem };
}

/** While ClickHouse is down, the list instead of the ranking. */
export async function fetchCreators(
  view: View,
  cursor: string | null,
  signal: AbortSignal,
): Promise<CreatorPage> {
  const sort = creatorSort(view);
  // Only lists have cursors.
  if (!sort.gain || cursor) return fetchListed(view, sort, cursor, signal);
  try {
    return await fetchRanked(view, sort, sort.gain, signal);
  } catch (cause) {
    if (!(cause instanceof ApiProblem) || cause.status !== 503) throw cause;
    return { ...(await fetchListed(view, { ...sort, gain: null }, cursor, signal)), problem: cause };
  }
}
