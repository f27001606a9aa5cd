// The tags of accounts, as far as the first of these have them: the API does not list tags.

import { api, unwrap } from "../api/client.ts";

/** The longest page of the list. */
const MAX_ACCOUNTS = 200;

interface Tag {
  name: string;
  value: string;
  accounts: number;
}

/** What most accounts have comes first. */
export async function fetchTags(signal: AbortSignal): Promise<Tag[]> {
  const query = { limit: MAX_ACCOUNTS, order_by: "follower_count" as const };
  const { data } = await unwrap(api.GET("/accounts", { params: { query }, signal }));
  const tags = new Map<string, Tag>();
  for (const [name, value] of data.flatMap(({ metadata }) => Object.entries(metadata))) {
    const key = JSON.stringify([name, value]);
    tags.set(key, { name, value: String(value), accounts: (tags.get(key)?.accounts ?? 0) + 1 });
  }
  return [...tags.values()].sort((a, b) => b.accounts - a.accounts);
}
