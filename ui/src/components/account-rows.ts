// The rows of the accounts' table. Sorted by a gain: the ranking. Sorted by anything else, or searched: the list, and the gains of
// its rows. Three requests a page.

import { ApiProblem, api, unwrap } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { type Platform, type View, windowParameters } from "../state/view.ts";
import { FIGURES, type Figure, seriesFigure } from "./figures.ts";
import { type GainColumns, type GainPage, type GainSort, NO_SERIES, seriesOrNone } from "./gain-rows.ts";
import { STATUSES, type TrackingStatus } from "./tracking-reason.ts";

const PAGE_SIZE = 50;
/** The longest page of a list. */
const MAX_LISTED = 200;
const LIST_SORTS = [
  "username",
  "follower_count",
  "added_at",
  "last_scrape_time",
  "next_attempt_at",
  "total_post_count",
  "view_count",
] as const;

type Tracking = components["schemas"]["Tracking"];

export interface AccountRow extends GainColumns {
  id: string;
  platform: Platform;
  username: string;
  name: string | null;
  profile_pic_url: string | null;
  creator_id: string | null;
  creator_name: string | null;
  follower_count: number;
  /** Null where the response does not say. */
  tracking: Pick<Tracking, "status" | "last_error" | "next_attempt_at"> | null;
  total_post_count: number | null;
}

export type AccountSort = GainSort<(typeof LIST_SORTS)[number]>;
export type AccountPage = GainPage<AccountRow, AccountSort>;

/** The ranking has neither a search nor a filter for linked accounts. */
export function canRank({ filters }: View): boolean {
  return !filters.has("q") && !filters.has("linked");
}

export function accountSort(view: View): AccountSort {
  const text = view.filters.get("sort") ?? (canRank(view) ? "-views" : "-follower_count");
  const name = text.replace("-", "");
  const gain = canRank(view) ? (FIGURES.find((gain) => gain === name) ?? null) : null;
  const order_by = LIST_SORTS.find((sort) => sort === name);
  return {
    gain,
    order_by: order_by ?? "follower_count",
    order_direction: order_by && !text.startsWith("-") ? "asc" : "desc",
  };
}

const LOCAL_SORTS = ["username", "follower_count", "total_post_count"] as const;

/** Puts all rows of a list in another of its orders. Rankings have other columns. */
export function compareAccounts(
  { gain, order_by, order_direction }: AccountSort,
  page: AccountPage,
): ((left: AccountRow, right: AccountRow) => number) | null {
  const name = LOCAL_SORTS.find((name) => name === order_by);
  if (!name || gain || page.sort.gain) return null;
  const sign = order_direction === "asc" ? 1 : -1;
  return (left, right) => {
    const [a, b] = left[name] === right[name] ? [left.id, right.id] : [left[name] ?? "", right[name] ?? ""];
    return a < b ? -sign : sign;
  };
}

function statusOf({ filters }: View): TrackingStatus | null {
  return STATUSES.find((status) => status === filters.get("status")) ?? null;
}

function sharedFilters(view: View) {
  const status = statusOf(view);
  const category = view.filters.get("category");
  return {
    ...(view.platform ? { platform: view.platform } : {}),
    ...(category ? { category } : {}),
    ...(status ? { status: [status] } : {}),
  };
}

/** Filters of the list, which has more than the ranking. */
export function listFilters(view: View) {
  const [creator_id, q, linked] = [
    view.filters.get("creator_id"),
    view.filters.get("q"),
    view.filters.get("linked"),
  ];
  return {
    ...sharedFilters(view),
    ...(creator_id ? { creator_id: [creator_id] } : {}),
    ...(q ? { q } : {}),
    ...(linked ? { linked: linked === "true" } : {}),
  };
}

async function fetchSeries(view: View, account_ids: string[], signal: AbortSignal) {
  const query = {
    ...windowParameters(view.range),
    account_ids,
    metric: seriesFigure(accountSort(view).gain),
  };
  return seriesOrNone(unwrap(api.GET("/accounts/timeseries", { params: { query }, signal })));
}

async function fetchRanked(
  view: View,
  sort: AccountSort,
  metric: Figure,
  cursor: string | null,
  signal: AbortSignal,
): Promise<AccountPage> {
  const creator_id = view.filters.get("creator_id");
  const shared = { ...sharedFilters(view), ...(creator_id ? { creator_id } : {}) };
  const query = {
    ...windowParameters(view.range),
    ...shared,
    metric,
    include_all: true,
    limit: PAGE_SIZE,
    ...(cursor ? { cursor } : {}),
  };
  const others = {
    status: STATUSES.filter((status) => status !== "active"),
    ...(creator_id ? { creator_id: [creator_id] } : {}),
    limit: MAX_LISTED,
  };
  const [{ data, pagination, meta }, notActive] = await Promise.all([
    unwrap(api.GET("/accounts/top", { params: { query }, signal })),
    unwrap(api.GET("/accounts", { params: { query: others }, signal })),
  ]);
  const { series, today } =
    data.length > 0
      ? await fetchSeries(
          view,
          data.map(({ id }) => id),
          signal,
        )
      : NO_SERIES;
  const trackings = new Map(notActive.data.map(({ id, tracking }) => [id, tracking]));
  const otherwise = notActive.pagination.next_cursor
    ? null
    : { status: "active" as const, last_error: null, next_attempt_at: null };
  const rows = data.map((account) => ({
    ...account,
    tracking: trackings.get(account.id) ?? otherwise,
    total_post_count: null,
    gains: account.metrics,
    engagement_rate: account.metrics.engagement_rate,
    new_posts: account.metrics.new_posts,
    today,
    series: series[account.id] ?? null,
  }));
  return { rows, next: pagination.next_cursor ?? null, sort, meta, problem: null };
}

async function fetchListed(
  view: View,
  sort: AccountSort,
  cursor: string | null,
  signal: AbortSignal,
): Promise<AccountPage> {
  const { order_by, order_direction } = sort;
  const query = {
    ...listFilters(view),
    order_by,
    order_direction,
    limit: PAGE_SIZE,
    ...(cursor ? { cursor } : {}),
  };
  const { data, pagination } = await unwrap(api.GET("/accounts", { params: { query }, signal }));
  if (data.length === 0) return { rows: [], next: null, sort, meta: null, problem: null };
  const account_ids = data.map(({ id }) => id);
  const [metrics, { series, today }] = await Promise.all([
    unwrap(
      api.GET("/accounts/metrics", {
        params: { query: { ...windowParameters(view.range), account_ids } },
        signal,
      }),
    ).catch(ApiProblem.from),
    fetchSeries(view, account_ids, signal),
  ]);
  signal.throwIfAborted();
  // While ClickHouse is down, the list shows without gains.
  const [gains, problem] = metrics instanceof ApiProblem ? [null, metrics] : [metrics, null];
  const rows = data.map((account) => ({
    ...account,
    gains: gains?.data[account.id] ?? null,
    engagement_rate: null,
    new_posts: null,
    change_percent: null,
    today,
    series: series[account.id] ?? null,
  }));
  return { rows, next: pagination.next_cursor ?? null, sort, meta: gains?.meta ?? null, problem };
}

/** While ClickHouse is down, the first page of the list instead of the ranking's: neither continues the other. */
export async function fetchAccounts(
  view: View,
  cursor: string | null,
  signal: AbortSignal,
): Promise<AccountPage> {
  const sort = accountSort(view);
  if (!sort.gain) return fetchListed(view, sort, cursor, signal);
  try {
    return await fetchRanked(view, sort, sort.gain, cursor, signal);
  } catch (cause) {
    if (cursor || !(cause instanceof ApiProblem) || cause.status !== 503) throw cause;
    return {
      ...(await fetchListed(view, { ...sort, gain: null }, null, signal)),
      next: null,
      isPart: true,
      problem: cause,
    };
  }
}
