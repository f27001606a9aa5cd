// Rows of the content page: the ranking by a gain, or the list by a counter or time, and then what the rows gained.

import { api, unwrap } from "../api/client.ts";
import type { Page } from "../api/pages.ts";
import { CONTENT_METRICS, type ContentMetric, metricOf } from "../state/metrics.ts";
import { MAX_SERIES_DAYS, type Platform, rangeDays, type View, windowParameters } from "../state/view.ts";
import { type Order, orderOf, rankedBy, rankingDirection } from "./order.ts";

export const PAGE_SIZE = 50;

/** Counters and times that the list sorts by. */
const LIST_FIELDS = ["create_time", "view_count", "like_count", "play_count", "added_at"] as const;

type Gains = Record<ContentMetric, number>;

export interface ContentRow {
  id: string;
  platform: Platform;
  url: string | null;
  description: string | null;
  media_type: string | null;
  duration: number | null;
  cover_image_url: string | null;
  create_time: string | null;
  account_id: string | null;
  account_username: string | null;
  creator_name: string | null;
  view_count: number;
  /** In the window; null in the list, whose gains come as details. */
  gains: Gains | null;
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

export type ContentOrder = Order<ContentMetric, (typeof LIST_FIELDS)[number]>;

export function contentOrder(view: View): ContentOrder {
  return orderOf(view, CONTENT_METRICS, LIST_FIELDS, rankedBy(metricOf(CONTENT_METRICS, view.metric)));
}

/** The metric that rows are ranked by, and that is shown day by day. */
export function contentMetric(view: View): ContentMetric {
  return contentOrder(view).metric ?? metricOf(CONTENT_METRICS, view.metric);
}

/** The filters as parameters of `/content` and `/content/top`. */
export function contentFilters({ platform, filters }: View) {
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
    ...text("account_id"),
    ...text("creator_id"),
    ...text("category"),
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

export async function fetchContent(
  view: View,
  cursor: string | null,
  signal: AbortSignal,
): Promise<ContentPage> {
  const { metric, field, direction } = contentOrder(view);
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
