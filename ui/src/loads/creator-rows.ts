// The rows of the creators' table. Sorted by a gain: the ranking. By name, or searched: the list, and the gains of its rows. Three
// requests a page.

import { ApiProblem, api, countOf, unwrap } from "../api/client.ts";
import { metricOf, RECORD_METRICS, type RecordMetric, SERIES_METRICS } from "../state/metrics.ts";
import { labelParameters, type View, windowParameters } from "../state/view.ts";
import {
  fetchCreatorGains,
  type GainColumns,
  type GainPage,
  listedColumns,
  rankedColumns,
  seriesOrNone,
} from "./gain-rows.ts";
import { type Order, orderOf, rankedBy, rankingDirection } from "./order.ts";
import { entriesBeside } from "./year-before.ts";

/** The longest page of a ranking of creators. */
const MAX_RANKED = 25;
const PAGE_SIZE = 50;
/** The longest page of a list. */
const MAX_LISTED = 200;
const LIST_FIELDS = ["name", "added_at"] as const;

export interface CreatorRow extends GainColumns {
  id: string;
  name: string;
  account_count: number;
  follower_count: number;
  /** Null where the response does not say. */
  is_active: boolean | null;
}

type CreatorOrder = Order<RecordMetric, (typeof LIST_FIELDS)[number]>;
export type CreatorPage = GainPage<CreatorRow, CreatorOrder>;

const BY_NAME: CreatorOrder & { metric?: undefined } = { text: "name", field: "name", direction: "asc" };

/** Whose accounts are of some platform, category and tags: filters of the ranking, which the list lacks. */
export function isRankingFiltered(view: View): boolean {
  return view.platform !== null || Object.keys(labelParameters(view)).length > 0;
}

/** What the list is searched by, unless filters of the ranking are chosen. */
export function creatorSearch(view: View): string | undefined {
  return isRankingFiltered(view) ? undefined : view.filters.get("q");
}

export function creatorFilters(view: View) {
  return { ...(view.platform ? { platform: view.platform } : {}), ...labelParameters(view) };
}

export function creatorOrder(view: View): CreatorOrder {
  if (creatorSearch(view))
    return orderOf<RecordMetric, (typeof LIST_FIELDS)[number]>(view, [], LIST_FIELDS, BY_NAME);
  return orderOf(view, RECORD_METRICS, isRankingFiltered(view) ? [] : LIST_FIELDS, rankedBy("views"));
}

/** How many creators match; null if they are filtered by what only the ranking has. */
export async function countCreators(view: View, signal: AbortSignal): Promise<number | null> {
  if (isRankingFiltered(view)) return null;
  const q = creatorSearch(view);
  const query = { ...(q ? { q } : {}), limit: 1, include_total: true };
  return countOf(api.GET("/creators", { params: { query }, signal }));
}

async function fetchSeries(view: View, creator_ids: string[], signal: AbortSignal) {
  const metric = metricOf(SERIES_METRICS, creatorOrder(view).metric);
  const query = { ...windowParameters(view.range), creator_ids, metric, unobserved: "null" as const };
  return seriesOrNone(view.range, creator_ids, () =>
    unwrap(api.GET("/creators/timeseries", { params: { query }, signal })),
  );
}

async function fetchRanked(
  view: View,
  order: CreatorOrder & { metric: RecordMetric },
  cursor: string | null,
  signal: AbortSignal,
): Promise<CreatorPage> {
  const query = {
    ...windowParameters(view.range),
    ...creatorFilters(view),
    metric: order.metric,
    ...rankingDirection(order),
    limit: MAX_RANKED,
    ...(cursor ? { cursor } : {}),
  };
  const paused = { is_active: false, limit: MAX_LISTED };
  const [{ data, meta, pagination }, notActive] = await Promise.all([
    unwrap(api.GET("/creators/top", { params: { query }, signal })),
    unwrap(api.GET("/creators", { params: { query: paused }, signal })),
  ]);
  const ids = data.map(({ id }) => id);
  const [series, entries] = await Promise.all([
    fetchSeries(view, ids, signal),
    entriesBeside(view, order.metric, data, fetchCreatorGains(signal)),
  ]);
  const pausedIds = new Set(notActive.data.map(({ id }) => id));
  const otherwise = notActive.pagination.next_cursor ? null : true;
  const rows = entries.map((creator) => ({
    ...creator,
    ...rankedColumns(creator, order.metric, series),
    is_active: pausedIds.has(creator.id) ? false : otherwise,
  }));
  return { rows, next: pagination.next_cursor ?? null, order, meta, problem: null };
}

async function fetchListed(
  view: View,
  order: CreatorOrder & { metric?: undefined },
  cursor: string | null,
  signal: AbortSignal,
): Promise<CreatorPage> {
  const q = creatorSearch(view);
  const query = {
    order_by: order.field,
    order_direction: order.direction,
    limit: PAGE_SIZE,
    ...(q ? { q } : {}),
    ...(cursor ? { cursor } : {}),
  };
  const { data, pagination } = await unwrap(api.GET("/creators", { params: { query }, signal }));
  if (data.length === 0) return { rows: [], next: null, order, meta: null, problem: null };
  const creator_ids = data.map(({ id }) => id);
  const { columnsOf, ...gains } = await listedColumns(
    fetchCreatorGains(signal)(view, creator_ids),
    fetchSeries(view, creator_ids, signal),
  );
  signal.throwIfAborted();
  const rows = data.map((creator) => ({
    ...creator,
    ...columnsOf(creator.id),
    account_count: creator.accounts_summary.total,
    follower_count: creator.accounts_summary.total_followers,
  }));
  return { rows, next: pagination.next_cursor ?? null, order, ...gains };
}

/** While ClickHouse is down, the first page of the list instead of the ranking's: neither continues the other. */
export async function fetchCreators(
  view: View,
  cursor: string | null,
  signal: AbortSignal,
): Promise<CreatorPage> {
  const order = creatorOrder(view);
  if (!order.metric) return fetchListed(view, order, cursor, signal);
  try {
    return await fetchRanked(view, order, cursor, signal);
  } catch (cause) {
    if (cursor || isRankingFiltered(view) || !(cause instanceof ApiProblem) || cause.status !== 503)
      throw cause;
    const page = await fetchListed(view, BY_NAME, null, signal);
    return { ...page, next: null, isPart: true, problem: cause };
  }
}
