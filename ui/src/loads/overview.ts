// What the organization, an account or a creator gained.

import { api, unwrap } from "../api/client.ts";
import { scopeParameters, type View, windowParameters } from "../state/view.ts";

/** Of what: of one record, or of everything, of one platform if the page filters by it. */
export type Scope =
  | { account_id: string }
  | { creator_id: string }
  | { platform?: NonNullable<View["platform"]>; creator_id?: string; category?: string };

export function overviewScope(view: View): Scope {
  return { ...(view.platform ? { platform: view.platform } : {}), ...scopeParameters(view) };
}

export function isSplit({ platform, filters }: View): boolean {
  return platform === null && filters.get("split") === "platform";
}

export async function fetchTotals({ range }: View, scope: Scope, signal: AbortSignal) {
  return unwrap(
    api.GET("/overview", { params: { query: { ...windowParameters(range), ...scope } }, signal }),
  );
}

export async function fetchDays(
  { range, compare }: View,
  scope: Scope,
  isSplit: boolean,
  signal: AbortSignal,
) {
  const query = {
    ...windowParameters(range),
    ...scope,
    ...(compare ? { compare: "previous" as const } : {}),
    ...(isSplit ? { group_by: "platform" as const } : {}),
  };
  return unwrap(api.GET("/analytics/timeseries", { params: { query }, signal }));
}
