// The rows of the accounts' table. Sorted by a gain: the ranking. Sorted by anything else: the list, and the gains of its rows.

import { ApiProblem, api, countOf, unwrap } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { metricOf, RECORD_METRICS, type RecordMetric, SERIES_METRICS } from "../state/metrics.ts";
import { labelParameters, type View, windowParameters } from "../state/view.ts";
import { FAILURES, type FailureReason, STATUSES, type TrackingStatus } from "../tracking-reason.ts";
import {
  fetchAccountGains,
  type GainColumns,
  type GainPage,
  listedColumns,
  rankedColumns,
  seriesOrNone,
} from "./gain-rows.ts";
import { type Order, orderOf, rankedBy, rankingDirection } from "./order.ts";
import { entriesBeside } from "./year-before.ts";

const PAGE_SIZE = 50;
const LIST_FIELDS = [
  "username",
  "follower_count",
  "added_at",
  "last_scrape_time",
  "next_attempt_at",
  "total_post_count",
  "view_count",
] as const;

type Listed = components["schemas"]["Account"];
type Ranked = components["schemas"]["TopAccount"];

export interface AccountRow extends Pick<Listed, keyof Listed & keyof Ranked>, GainColumns {
  total_post_count: number | null;
}

export type AccountOrder = Order<RecordMetric, (typeof LIST_FIELDS)[number]>;
export type AccountPage = GainPage<AccountRow, AccountOrder>;

const BY_FOLLOWERS: AccountOrder & { metric?: undefined } = {
  text: "-follower_count",
  field: "follower_count",
  direction: "desc",
};

/** The ranking lacks this filter. */
export function canRank({ filters }: View): boolean {
  return !filters.has("failure");
}

export function accountOrder(view: View): AccountOrder {
  return canRank(view)
    ? orderOf(view, RECORD_METRICS, LIST_FIELDS, rankedBy("views"))
    : orderOf<RecordMetric, (typeof LIST_FIELDS)[number]>(view, [], LIST_FIELDS, BY_FOLLOWERS);
}

const LOCAL_FIELDS = ["username", "follower_count", "total_post_count"] as const;

/** Puts all rows of a list in another of its orders. Rankings have other columns. */
export function compareAccounts(
  { field, direction }: AccountOrder,
  page: AccountPage,
): ((left: AccountRow, right: AccountRow) => number) | null {
  const name = LOCAL_FIELDS.find((name) => name === field);
  if (!name || page.order.metric) return null;
  const sign = direction === "asc" ? 1 : -1;
  return (left, right) => {
    const [a, b] = left[name] === right[name] ? [left.id, right.id] : [left[name] ?? "", right[name] ?? ""];
    return a < b ? -sign : sign;
  };
}

function statusOf({ filters }: View): TrackingStatus | null {
  return STATUSES.find((status) => status === filters.get("status")) ?? null;
}

function failureOf({ filters }: View): FailureReason | null {
  return FAILURES.find((reason) => reason === filters.get("failure")) ?? null;
}

function sharedFilters(view: View) {
  const status = statusOf(view);
  const [q, linked] = [view.filters.get("q"), view.filters.get("linked")];
  return {
    ...(view.platform ? { platform: view.platform } : {}),
    ...labelParameters(view),
    ...(status ? { status: [status] } : {}),
    ...(q ? { q } : {}),
    ...(linked ? { linked: linked === "true" } : {}),
  };
}

/** Filters of the list, which has more than the ranking. */
export function listFilters(view: View) {
  const creator_id = view.filters.get("creator_id");
  const failure = failureOf(view);
  return {
    ...sharedFilters(view),
    ...(creator_id ? { creator_id: [creator_id] } : {}),
    ...(failure ? { failure } : {}),
  };
}

/** How many accounts match. */
export async function countAccounts(view: View, signal: AbortSignal): Promise<number | null> {
  const query = { ...listFilters(view), limit: 1, include_total: true };
  return countOf(api.GET("/accounts", { params: { query }, signal }));
}

async function fetchSeries(view: View, account_ids: string[], signal: AbortSignal) {
  const metric = metricOf(SERIES_METRICS, accountOrder(view).metric);
  const query = { ...windowParameters(view.range), account_ids, metric, unobserved: "null" as const };
  return seriesOrNone(view.range, account_ids, () =>
    unwrap(api.GET("/accounts/timeseries", { params: { query }, signal })),
  );
}

async function fetchRanked(
  view: View,
  order: AccountOrder & { metric: RecordMetric },
  cursor: string | null,
  signal: AbortSignal,
): Promise<AccountPage> {
  const creator_id = view.filters.get("creator_id");
  const query = {
    ...windowParameters(view.range),
    ...sharedFilters(view),
    ...(creator_id ? { creator_id } : {}),
    metric: order.metric,
    include_all: true,
    ...rankingDirection(order),
    limit: PAGE_SIZE,
    ...(cursor ? { cursor } : {}),
  };
  const { data, pagination, meta } = await unwrap(api.GET("/accounts/top", { params: { query }, signal }));
  const ids = data.map(({ id }) => id);
  const [series, entries] = await Promise.all([
    fetchSeries(view, ids, signal),
    entriesBeside(view, order.metric, data, fetchAccountGains(signal)),
  ]);
  const rows = entries.map((account) => ({
    ...account,
    ...rankedColumns(account, order.metric, series),
    total_post_count: null,
  }));
  return { rows, next: pagination.next_cursor ?? null, order, meta, problem: null };
}

async function fetchListed(
  view: View,
  order: AccountOrder & { metric?: undefined },
  cursor: string | null,
  signal: AbortSignal,
): Promise<AccountPage> {
  const query = {
    ...listFilters(view),
    order_by: order.field,
    order_direction: order.direction,
    limit: PAGE_SIZE,
    ...(cursor ? { cursor } : {}),
  };
  const { data, pagination } = await unwrap(api.GET("/accounts", { params: { query }, signal }));
  if (data.length === 0) return { rows: [], next: null, order, meta: null, problem: null };
  const account_ids = data.map(({ id }) => id);
  const { columnsOf, ...gains } = await listedColumns(
    fetchAccountGains(signal)(view, account_ids),
    fetchSeries(view, account_ids, signal),
  );
  signal.throwIfAborted();
  const rows = data.map((account) => ({ ...account, ...columnsOf(account.id) }));
  return { rows, next: pagination.next_cursor ?? null, order, ...gains };
}

/** While ClickHouse is down, the first page of the list instead of the ranking's: neither continues the other. */
export async function fetchAccounts(
  view: View,
  cursor: string | null,
  signal: AbortSignal,
): Promise<AccountPage> {
  const order = accountOrder(view);
  if (!order.metric) return fetchListed(view, order, cursor, signal);
  try {
    return await fetchRanked(view, order, cursor, signal);
  } catch (cause) {
    if (cursor || !(cause instanceof ApiProblem) || cause.status !== 503) throw cause;
    const page = await fetchListed(view, BY_FOLLOWERS, null, signal);
    return { ...page, next: null, isPart: true, problem: cause };
  }
}
