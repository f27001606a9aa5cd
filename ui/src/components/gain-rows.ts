// What the rows of accounts and of creators have in common: gains of the window, and their days.

import type { ApiProblem } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import type { Figure } from "./figures.ts";
import type { Page } from "./pages.ts";

type WindowMeta = components["schemas"]["WindowMeta"];

export interface GainColumns {
  gains: { views: number; engagement: number; followers: number } | null;
  /** Only rankings have them. */
  engagement_rate: number | null;
  new_posts: number | null;
  change_percent: number | null;
  series: readonly (number | null)[] | null;
  /** Position in the series of the day that is not over; -1 without. */
  today: number;
}

/** An order of records, by what they gained or by what their list sorts by. */
export interface GainSort<ListSort extends string> {
  /** Null: the list in another order. */
  gain: Figure | null;
  order_by: ListSort;
  order_direction: "asc" | "desc";
}

/** As in the address. */
export function sortText({ gain, order_by, order_direction }: GainSort<string>): string {
  return gain ? `-${gain}` : order_direction === "desc" ? `-${order_by}` : order_by;
}

export interface GainPage<Row, Sort> extends Page<Row> {
  /** How the API sorted it. */
  sort: Sort;
  /** The days of the gains; null if there are none. */
  meta: WindowMeta | null;
  /** Why the gains are not there. */
  problem: ApiProblem | null;
}

interface SeriesOfRows {
  series: Readonly<Record<string, readonly (number | null)[]>>;
  today: number;
}

export const NO_SERIES: SeriesOfRows = { series: {}, today: -1 };

/** Series for sparklines. Their window is shorter than that of rankings: without them, the table has none. */
export async function seriesOrNone(
  response: Promise<{ data: SeriesOfRows["series"]; meta: { dates: string[]; complete_through: string } }>,
): Promise<SeriesOfRows> {
  return response.then(
    ({ data, meta }) => ({
      series: data,
      today: meta.dates.findIndex((date) => date > meta.complete_through),
    }),
    () => NO_SERIES,
  );
}
