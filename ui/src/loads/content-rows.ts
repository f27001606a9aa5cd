// Rows of the content page: the ranking by a gain, the list by a counter or time, or what is unusual, and then what the rows gained.

import { api, countOf, unwrap } from "../api/client.ts";
import type { Page } from "../api/pages.ts";
import type { components } from "../api/schema.d.ts";
import { CONTENT_METRICS, type ContentMetric, metricOf } from "../state/metrics.ts";
import {
  daysOf,
  MAX_SERIES_DAYS,
  rangeDays,
  scopeParameters,
  type View,
  windowParameters,
} from "../state/view.ts";
import { type Order, orderOf, rankedBy, rankingDirection } from "./order.ts";
import { breakoutAge, fetchBreakouts } from "./rankings.ts";

export const PAGE_SIZE = 50;

/** Counters and times that the list sorts by. */
const LIST_FIELDS = ["create_time", "view_count", "like_count", "play_count", "added_at"] as const;

type Gains = Record<ContentMetric, number>;

type Schemas = components["schemas"];
/** What posts have, however they are listed. `unknown_counters` are 0 in the record and in gains. */
type Shared = keyof Schemas["Content"] & keyof Schemas["TopContent"] & keyof Schemas["BreakoutVideo"];

export interface ContentRow extends Pick<Schemas["TopContent"], Shared> {
  /** In the window; null in the list, whose gains come as details. */
  gains: Gains | null;
  /** How its views compare with those that earlier posts of its account had at the same age, where rows are ordered by that. */
  usual?: { multiple: number; baseline: number; actual: number; sample: number };
}

export interface ContentDetail {
  gains: Gains | null;
  /** Gained on each day; null for a window that is too long for that. */
  series: readonly (number | null)[] | null;
}

export interface WindowMeta {
  start_date: string;
  end_date: string;
  complete_through: string;
  data_as_of: string | null;
}

export interface ContentPage extends Page<ContentRow> {
  /** The window that the API applied; null in the list. */
  meta: WindowMeta | null;
}

export type ContentOrder = Order<ContentMetric, (typeof LIST_FIELDS)[number] | "multiple">;

/** What did best beside what is usual. */
export const BY_MULTIPLE = { text: "-multiple", field: "multiple", direction: "desc" } as const;

export function contentOrder(view: View): ContentOrder {
  if (view.sort === BY_MULTIPLE.text) return BY_MULTIPLE;
  return orderOf(view, CONTENT_METRICS, LIST_FIELDS, rankedBy(metricOf(CONTENT_METRICS, view.metric)));
}

/** The metric that rows are ranked by, and that is shown day by day. */
export function contentMetric(view: View): ContentMetric {
  return contentOrder(view).metric ?? metricOf(CONTENT_METRICS, view.metric);
}

/** The filters as parameters of `/content` and `/content/top`. */
export function contentFilters(view: View) {
  const { platform, filters } = view;
  const text = <Name extends string>(name: Name) => {
    const value = filters.get(name);
    return (value ? { [name]: value } : {}) as { [name in Name]?: string };
  };
  const flag = <Name extends string>(name: Name) => {
    const value = filters.get(name);
    return (value === "true" || value === "false" ? { [name]: value === "true" } : {}) as {
      [name in Name]?: boolean;
    };
  };
  const kind = filters.get("kind");
  const minViews = Number(filters.get("min_views"));
  return {
    ...(platform ? { platform } : {}),
    ...scopeParameters(view),
    ...text("account_id"),
    ...text("collection_id"),
    ...text("posted_after"),
    ...text("posted_before"),
    ...text("q"),
    ...flag("is_active"),
    ...flag("is_unavailable"),
    ...(kind === "discovered" || kind === "tracked" ? ({ kind } as const) : {}),
    ...(filters.has("hashtag") ? { hashtag: filters.get("hashtag")?.split(",") ?? [] } : {}),
    ...(filters.has("media_type") ? { media_type: filters.get("media_type")?.split(",") ?? [] } : {}),
    ...(Number.isSafeInteger(minViews) && minViews > 0 ? { min_views: minViews } : {}),
  };
}

/** The longest page of the list, and how many posts are put into a calendar. */
const MAX_PAGE = 200;
export const MAX_POSTED = 1_000;

/** The posts of the page's range by when they were posted. */
export async function fetchPosted(
  view: View,
  signal: AbortSignal,
): Promise<{ rows: ContentRow[]; isPart: boolean }> {
  const { start, end } = daysOf(view.range);
  const filters = contentFilters(view);
  const query = {
    ...filters,
    posted_after: [filters.posted_after ?? start, start].sort()[1] ?? start,
    posted_before: [filters.posted_before ?? end, end].sort()[0] ?? end,
    order_by: "create_time" as const,
    order_direction: "asc" as const,
    limit: MAX_PAGE,
  };
  const rows: ContentRow[] = [];
  let cursor: string | null = null;
  do {
    const page: { data: Omit<ContentRow, "gains">[]; pagination: { next_cursor?: string | null } } =
      await unwrap(
        api.GET("/content", { params: { query: { ...query, ...(cursor ? { cursor } : {}) } }, signal }),
      );
    rows.push(...page.data.map((row) => ({ ...row, gains: null })));
    cursor = page.pagination.next_cursor ?? null;
  } while (cursor && rows.length < MAX_POSTED);
  return { rows, isPart: cursor !== null };
}

/** The filters that posts have which are compared with what is usual. */
export const UNUSUAL_FILTERS = ["account_id", "collection_id", "hashtag", "posted_after"] as const;

/** Which posts are compared with what is usual, and how; those of the page's range if no other day is chosen. */
export function unusualQuery(view: View) {
  const { platform, account_id, collection_id, hashtag, posted_after } = contentFilters(view);
  return {
    ...(platform ? { platform } : {}),
    ...scopeParameters(view),
    ...(account_id ? { account_id } : {}),
    ...(collection_id ? { collection_id } : {}),
    ...(hashtag ? { hashtag } : {}),
    posted_after: posted_after ?? daysOf(view.range).start,
    age_days: breakoutAge(view),
    min_multiple: Math.max(1, Number(view.filters.get("min_multiple")) || 1),
    limit: PAGE_SIZE,
  };
}

async function fetchUnusual(view: View, cursor: string | null, signal: AbortSignal): Promise<ContentPage> {
  const query = { ...unusualQuery(view), ...(cursor ? { cursor } : {}) };
  const { data, pagination } = await fetchBreakouts(query, signal);
  const rows = data.map(({ multiple, baseline, actual, sample, ...row }) => ({
    ...row,
    gains: null,
    usual: { multiple, baseline, actual, sample },
  }));
  return { rows, next: pagination.next_cursor ?? null, meta: null };
}

/** How many posts match; null for those that are compared with what is usual. */
export async function countContent(view: View, signal: AbortSignal): Promise<number | null> {
  if (contentOrder(view).field === "multiple") return null;
  const query = { ...contentFilters(view), limit: 1, include_total: true };
  return countOf(api.GET("/content", { params: { query }, signal }));
}

export async function fetchContent(
  view: View,
  cursor: string | null,
  signal: AbortSignal,
): Promise<ContentPage> {
  const { metric, field, direction } = contentOrder(view);
  if (field === "multiple") return fetchUnusual(view, cursor, signal);
  const page = { ...contentFilters(view), limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
  if (field) {
    const query = { ...page, order_by: field, order_direction: direction };
    const { data, pagination } = await unwrap(api.GET("/content", { params: { query }, signal }));
    const rows = data.map((row) => ({ ...row, gains: null }));
    return { rows, next: pagination.next_cursor ?? null, meta: null };
  }
  const query = {
    ...windowParameters(view.range),
    ...page,
    metric,
    include_all: true,
    ...rankingDirection({ direction }),
  };
  const { data, pagination, meta } = await unwrap(api.GET("/content/top", { params: { query }, signal }));
  const rows = data.map(({ metrics, ...row }) => ({ ...row, gains: metrics }));
  return { rows, next: pagination.next_cursor ?? null, meta };
}

/**
 * What rows gained in all, unless the ranking said so, and on each day. The ranking's own window says how current everything in
 * scope is, the one returned here only the rows.
 */
export async function fetchContentDetails(
  view: View,
  ids: string[],
  signal: AbortSignal,
): Promise<{ details: ReadonlyMap<string, ContentDetail>; meta: WindowMeta | undefined }> {
  const metric = contentMetric(view);
  const window = windowParameters(view.range);
  const [gains, series] = await Promise.all([
    contentOrder(view).field
      ? unwrap(api.GET("/videos/metrics", { params: { query: { ...window, video_ids: ids } }, signal }))
      : null,
    rangeDays(view.range) <= MAX_SERIES_DAYS
      ? unwrap(
          api.GET("/content/timeseries", {
            params: { query: { ...window, ids, metric, unobserved: "null" } },
            signal,
          }),
        )
      : null,
  ]);
  const details = ids.map(
    (id) => [id, { gains: gains?.data[id] ?? null, series: series?.data[id] ?? null }] as const,
  );
  return { details: new Map(details), meta: gains?.meta };
}
