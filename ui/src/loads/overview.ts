// What the organization, an account or a creator gained.

import { api, unwrap } from "../api/client.ts";
import { type LabelParameters, scopeParameters, type View, windowParameters } from "../state/view.ts";
import { daysBeside, totalsBeside } from "./year-before.ts";

/** Of what: of one record, or of everything, of one platform if the page filters by it. */
export type Scope =
  | { account_id: string }
  | { creator_id: string }
  | ({ platform?: NonNullable<View["platform"]>; creator_id?: string } & LabelParameters);

export function overviewScope(view: View): Scope {
  return { ...(view.platform ? { platform: view.platform } : {}), ...scopeParameters(view) };
}

export function isSplit({ platform, filters }: View): boolean {
  return platform === null && filters.get("split") === "platform";
}

export const GRANULARITIES = ["day", "week", "month"] as const;
export type Granularity = (typeof GRANULARITIES)[number];

/** What a value of the page's chart is of. */
export function granularityOf({ filters }: View): Granularity {
  return GRANULARITIES.find((granularity) => granularity === filters.get("granularity")) ?? "day";
}

/** What totals depend on besides the range and what they are of. */
export function totalsComparison({ compare }: View): boolean {
  return compare === "year";
}

export async function fetchTotals(view: View, scope: Scope, signal: AbortSignal) {
  return totalsBeside(view, ({ range }) =>
    unwrap(api.GET("/overview", { params: { query: { ...windowParameters(range), ...scope } }, signal })),
  );
}

export async function fetchDays(view: View, scope: Scope, isSplit: boolean, signal: AbortSignal) {
  const granularity = granularityOf(view);
  const fetchOf = ({ range, compare }: View) => {
    const query = {
      ...windowParameters(range),
      ...scope,
      ...(compare === "previous" ? { compare } : {}),
      ...(isSplit ? { group_by: "platform" as const } : {}),
      ...(granularity === "day" ? {} : { granularity }),
    };
    return unwrap(api.GET("/analytics/timeseries", { params: { query }, signal }));
  };
  // Weeks of the year before begin on other dates.
  return granularity === "week" ? fetchOf(view) : daysBeside(view, fetchOf);
}
