// Rows of the content page: the ranking by a gain, or the list by a counter or time, and then what the rows gained.

import { api, unwrap } from "../api/client.ts";
import {
  MAX_SERIES_DAYS,
  METRICS,
  type Metric,
  type Platform,
  rangeDays,
  type View,
  windowParameters,
} from "../state/view.ts";
import type { Page } from "./pages.ts";

export const PAGE_SIZE = 50;

/** Counters and times that the list sorts by. */
const LIST_SORTS = ["create_time", "view_count", "like_count", "play_count", "added_at"] as const;

type Gains = Record<Metric, number>;

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
  series: readonly number[] | null;
}

export interface WindowMeta {
  start_date: string;
  end_date: string;
  complete_through: string;
  data_as_of: string | null;
}

export interface Sort {
  /** Of the list; null for the ranking. */
  order_by: (typeof LIST_SORTS)[number] | null;
  direction: "asc" | "desc";
  /** The gain that rows are ranked by, and that is shown day by day. */
  metric: Metric;
  /** As in the address. */
  text: string;
}

export function sortOf(view: View): Sort {
  const text = view.filters.get("sort") ?? `-${view.metric}`;
  const order_by = LIST_SORTS.find((name) => name === text.replace("-", "")) ?? null;
  const metric = METRICS.find((name) => `-${name}` === text) ?? view.metric;
  return {
    order_by,
    metric,
    direction: text.startsWith("-") ? "desc" : "asc",
    text: order_by ? text : `-${metric}`,
  };
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
    ...text("posted_after"),
    ...text("posted_before"),
    ...text("q"),
    ...flag("is_active"),
    ...flag("is_unavailable"),
    ...(kind === "discovered" || kind === "tracked" ? ({ kind } as const) : {}),
    ...(filters.has("media_type") ? { media_type: filters.get("media_type")?.split(",") ?? [] } : {}),
    ...(Number.isSafeInteger(minViews) && minViews > 0 ? { min_views: minViews } : {}),
  };
}

/** A page of rows; `onMeta` learns the window that the API applied. */
export async function fetchContent(
  view: View,
  cursor: string | null,
  signal: AbortSignal,
  onMeta: (meta: WindowMeta) => void,
): Promise<Page<ContentRow>> {
  const { order_by, direction, metric } = sortOf(view);
  const page = { ...contentFilters(view), limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
  if (order_by) {
    const query = { ...page, order_by, order_direction: direction };
    const { data, pagination } = await unwrap(api.GET("/content", { params: { query }, signal }));
    return { rows: data.map((row) => ({ ...row, gains: null })), next: pagination.next_cursor ?? null };
  }
  const query = { ...windowParameters(view.range), ...page, metric, include_all: true };
  const { data, pagination, meta } = await unwrap(api.GET("/content/top", { params: { query }, signal }));
  onMeta(meta);
  return {
    rows: data.map(({ metrics, ...row }) => ({ ...row, gains: metrics })),
    next: pagination.next_cursor ?? null,
  };
}

/** What rows gained in all, unless the ranking said so, and on each day. */
export async function fetchContentDetails(
  view: View,
  ids: string[],
  signal: AbortSignal,
  onMeta: (meta: WindowMeta) => void,
): Promise<ReadonlyMap<string, ContentDetail>> {
  const { order_by, metric } = sortOf(view);
  const window = windowParameters(view.range);
  const [gains, series] = await Promise.all([
    order_by
      ? unwrap(api.GET("/videos/metrics", { params: { query: { ...window, video_ids: ids } }, signal }))
      : null,
    rangeDays(view.range) <= MAX_SERIES_DAYS
      ? unwrap(api.GET("/content/timeseries", { params: { query: { ...window, ids, metric } }, signal }))
      : null,
  ]);
  // The ranking's own window says how current everything in scope is, these only the rows.
  if (gains) onMeta(gains.meta);
  return new Map(ids.map((id) => [id, { gains: gains?.data[id] ?? null, series: series?.data[id] ?? null }]));
}
