// What gained most in a window: content, accounts, creators.

import { api, unwrap } from "../api/client.ts";
import type { paths } from "../api/schema.d.ts";
import { CONTENT_METRICS, metricOf, RECORD_METRICS } from "../state/metrics.ts";
import {
  daysOf,
  labelParameters,
  linkTo,
  rangeDays,
  scopeParameters,
  type View,
  windowParameters,
} from "../state/view.ts";

export type RankingPath = "/content/top" | "/content/breakouts" | "/accounts/top" | "/creators/top";
export type RankingQuery<Path extends RankingPath> = NonNullable<paths[Path]["get"]["parameters"]["query"]>;

export const fetchTopContent = (query: RankingQuery<"/content/top">, signal: AbortSignal) =>
  unwrap(api.GET("/content/top", { params: { query }, signal }));
export const fetchBreakouts = (query: RankingQuery<"/content/breakouts">, signal: AbortSignal) =>
  unwrap(api.GET("/content/breakouts", { params: { query }, signal }));
export const fetchTopAccounts = (query: RankingQuery<"/accounts/top">, signal: AbortSignal) =>
  unwrap(api.GET("/accounts/top", { params: { query }, signal }));
export const fetchTopCreators = (query: RankingQuery<"/creators/top">, signal: AbortSignal) =>
  unwrap(api.GET("/creators/top", { params: { query }, signal }));

type RecordFilter = { account_id: string } | { creator_id: string };

/** The posts of an account or a creator that gained most. */
export function recordContentQuery(view: View, filter: RecordFilter): RankingQuery<"/content/top"> {
  return {
    ...windowParameters(view.range),
    ...filter,
    metric: metricOf(CONTENT_METRICS, view.metric),
    limit: 10,
  };
}

/** The address of all of them, in the same order. */
export function allRecordContent({ metric }: View, filter: RecordFilter): string {
  const sort = `-${metricOf(CONTENT_METRICS, metric)}`;
  return linkTo("/content", { ...filter, sort }, { isUnfiltered: true });
}

/** At how many days posts are compared with others: most of a short range are not older. */
export function breakoutAge({ range }: View): 1 | 7 {
  return rangeDays(range) < 14 ? 1 : 7;
}

/** The address of all of them, among posts: as much better than usual as breakouts are. */
export const ALL_BREAKOUTS = { sort: "-multiple", min_multiple: "3" };

/** Posts of the page's range that did far better than usual, of some. */
export function breakoutQuery(
  view: View,
  scope: Pick<RankingQuery<"/content/breakouts">, "creator_id" | "collection_id" | "category" | "metadata">,
): RankingQuery<"/content/breakouts"> {
  return {
    ...(view.platform ? { platform: view.platform } : {}),
    ...scope,
    limit: 7,
    age_days: breakoutAge(view),
    posted_after: daysOf(view.range).start,
  };
}

/** The rankings of the overview. */
export function overviewQueries(view: View) {
  const platform = view.platform ? { platform: view.platform } : {};
  const scope = scopeParameters(view);
  const shared = { ...windowParameters(view.range), ...platform, limit: 7 };
  const scoped = { ...shared, ...scope };
  const metric = metricOf(RECORD_METRICS, view.metric);
  return {
    content: { ...scoped, metric: metricOf(CONTENT_METRICS, view.metric) },
    breakouts: breakoutQuery(view, scope),
    accounts: { ...scoped, metric },
    // One creator is no ranking.
    creators: scope.creator_id ? null : { ...shared, ...labelParameters(view), metric },
  };
}
