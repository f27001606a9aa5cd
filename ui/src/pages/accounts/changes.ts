// Changes of many accounts. Each resolves to why some did not change.

import { itemMessage, MAX_BATCH } from "../../api/batch.ts";
import { ApiProblem, api, unwrap } from "../../api/client.ts";
import type { operations } from "../../api/schema.d.ts";
import { fetchAccount } from "../../loads/records.ts";

type Fields = operations["updateAccounts"]["requestBody"]["content"]["application/json"]["set"];
type Tags = Readonly<Record<string, string>>;

/** Requests for single accounts that are sent at a time. */
const MAX_AT_ONCE = 4;

/** Makes the same change to all. */
export async function changeAll(
  ids: readonly string[],
  set: Fields,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (let start = 0; start < ids.length; start += MAX_BATCH) {
    const body = { ids: ids.slice(start, start + MAX_BATCH), set };
    const { data } = await unwrap(api.PATCH("/accounts/batch", { body, signal }));
    problems.push(...data.flatMap((item) => (item.status < 300 ? [] : [itemMessage(item)])));
  }
  return problems;
}

/** Does something with each. */
async function each(ids: readonly string[], change: (id: string) => Promise<void>): Promise<string[]> {
  const problems: string[] = [];
  const waiting = [...ids];
  const work = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      try {
        await change(id);
      } catch (cause) {
        problems.push(ApiProblem.from(cause).message);
      }
    }
  };
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, work));
  return problems;
}

/** Sets one tag. The API replaces all tags of an account: accounts that have the same others are changed together. */
export async function addTag(
  ids: readonly string[],
  [name, value]: readonly [name: string, value: string],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const groups = new Map<string, { tags: Tags; ids: string[] }>();
  const problems = await each(ids, async (id) => {
    const tags = { ...(await fetchAccount(id, signal)).data.metadata, [name]: value };
    const key = JSON.stringify(Object.entries(tags).sort());
    groups.set(key, { tags, ids: [...(groups.get(key)?.ids ?? []), id] });
  });
  for (const group of groups.values())
    problems.push(...(await changeAll(group.ids, { metadata: group.tags }, signal)));
  return problems;
}

export function removeAll(ids: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
  return each(ids, async (account_id) => {
    await unwrap(api.DELETE("/accounts/{account_id}", { params: { path: { account_id } }, signal }));
  });
}
