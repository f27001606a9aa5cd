// One account, one creator, one post.

import { api, unwrap } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { metricOf, SERIES_METRICS } from "../state/metrics.ts";
import { MAX_SERIES_DAYS, type Range, rangeDays, type View, windowParameters } from "../state/view.ts";
import { fetchAccountGains } from "./gain-rows.ts";
import { entriesBeside } from "./year-before.ts";

/** Ages of posts that an account is compared by, in days. */
const BENCHMARK_AGES = [1, 3, 7, 14, 30];
/** The longest page of a ranking. */
const MAX_ACCOUNTS = 100;

export async function fetchAccount(account_id: string, signal: AbortSignal) {
  return unwrap(api.GET("/accounts/{account_id}", { params: { path: { account_id } }, signal }));
}

export async function fetchBenchmarks(account_id: string, signal: AbortSignal) {
  return unwrap(
    api.GET("/accounts/{account_id}/benchmarks", {
      params: { path: { account_id }, query: { ages: BENCHMARK_AGES } },
      signal,
    }),
  );
}

export async function fetchCreator(creator_id: string, signal: AbortSignal) {
  return unwrap(api.GET("/creators/{creator_id}", { params: { path: { creator_id } }, signal }));
}

/** The accounts of a creator by what they gained. */
export async function fetchCreatorAccounts(creator_id: string, view: View, signal: AbortSignal) {
  const query = {
    ...windowParameters(view.range),
    creator_id,
    metric: metricOf(SERIES_METRICS, view.metric),
    include_all: true,
    limit: MAX_ACCOUNTS,
  };
  const ranking = await unwrap(api.GET("/accounts/top", { params: { query }, signal }));
  const data = await entriesBeside(view, query.metric, ranking.data, fetchAccountGains(signal));
  return { ...ranking, data };
}

/** The most accounts that are compared day by day. */
export const MAX_LINES = 5;

/** The accounts of a ranking that are compared day by day; null if there are none, or too many days. */
export function comparedAccounts<Account>(
  ranking: readonly Account[],
  range: Range,
): readonly Account[] | null {
  return ranking.length > 0 && rangeDays(range) <= MAX_SERIES_DAYS ? ranking.slice(0, MAX_LINES) : null;
}

export async function fetchAccountLines(
  accounts: readonly { id: string }[],
  view: View,
  signal: AbortSignal,
) {
  const query = {
    ...windowParameters(view.range),
    account_ids: accounts.map(({ id }) => id),
    metric: metricOf(SERIES_METRICS, view.metric),
    unobserved: "null" as const,
  };
  return unwrap(api.GET("/accounts/timeseries", { params: { query }, signal }));
}

export async function fetchVideo(
  video_id: string,
  signal: AbortSignal,
): Promise<components["schemas"]["Content"]> {
  return (await unwrap(api.GET("/content/{video_id}", { params: { path: { video_id } }, signal }))).data;
}

export async function fetchHistory(video_id: string, { range }: View, signal: AbortSignal) {
  const query = { ...windowParameters(range), values: "both" as const };
  return unwrap(api.GET("/videos/{video_id}/analytics", { params: { path: { video_id }, query }, signal }));
}
