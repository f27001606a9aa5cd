// What happened: the feed of events.

import { api, countOf, unwrap } from "../api/client.ts";
import type { HappenedEvent } from "../api/live.ts";
import type { Page } from "../api/pages.ts";
import type { View } from "../state/view.ts";

const PAGE_SIZE = 50;

/** What a person chooses, and the types of events that it has. */
export const EVENT_KINDS = {
  posts: { name: "New posts", types: ["video.published"] },
  breakouts: { name: "Breakouts", types: ["video.breakout"] },
  milestones: { name: "Milestones", types: ["video.views_reached", "account.followers_reached"] },
  accounts: {
    name: "Tracking of accounts",
    types: [
      "account.unavailable",
      "account.available",
      "account.renamed",
      "account.failing",
      "account.recovered",
    ],
  },
  imports: { name: "Imports", types: ["import.ended"] },
  webhooks: { name: "Webhooks", types: ["webhook.disabled"] },
} as const satisfies Record<string, { name: string; types: HappenedEvent["type"][] }>;
export type EventKind = keyof typeof EVENT_KINDS;

export function eventKind({ filters }: View): EventKind | null {
  return (Object.keys(EVENT_KINDS) as EventKind[]).find((kind) => kind === filters.get("kind")) ?? null;
}

function eventFilters(view: View) {
  const kind = eventKind(view);
  const [account_id, creator_id, collection_id] = [
    view.filters.get("account_id"),
    view.filters.get("creator_id"),
    view.filters.get("collection_id"),
  ];
  return {
    ...(kind ? { type: [...EVENT_KINDS[kind].types] } : {}),
    ...(account_id ? { account_id } : {}),
    ...(creator_id ? { creator_id } : {}),
    ...(collection_id ? { collection_id } : {}),
  };
}

export async function fetchEvents(
  view: View,
  cursor: string | null,
  signal: AbortSignal,
): Promise<Page<HappenedEvent>> {
  const query = { ...eventFilters(view), limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
  const { data, pagination } = await unwrap(api.GET("/events", { params: { query }, signal }));
  return { rows: data, next: pagination.next_cursor ?? null };
}

export async function countEvents(view: View, signal: AbortSignal): Promise<number | null> {
  const query = { ...eventFilters(view), limit: 1, include_total: true };
  return countOf(api.GET("/events", { params: { query }, signal }));
}
