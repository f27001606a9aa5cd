// Whether everything is read in time.

import { api, unwrap } from "../api/client.ts";
import { scopeParameters, type View, windowParameters } from "../state/view.ts";

export const MAX_LISTED = 50;
export const NOT_UPDATING = ["failing", "unavailable", "unsupported"] as const;

export async function fetchTracking(signal: AbortSignal) {
  return (await unwrap(api.GET("/tracking", { signal }))).data;
}

export async function fetchNotUpdating(view: View, signal: AbortSignal) {
  const { creator_id, ...labels } = scopeParameters(view);
  const query = {
    ...(view.platform ? { platform: view.platform } : {}),
    ...(creator_id ? { creator_id: [creator_id] } : {}),
    ...labels,
    status: [...NOT_UPDATING],
    order_by: "follower_count" as const,
    limit: MAX_LISTED,
  };
  return unwrap(api.GET("/accounts", { params: { query }, signal }));
}

export async function fetchCoverage({ range }: View, signal: AbortSignal) {
  return unwrap(api.GET("/tracking/coverage", { params: { query: windowParameters(range) }, signal }));
}

export async function fetchCategories(signal: AbortSignal) {
  return unwrap(api.GET("/accounts/categories", { signal }));
}
