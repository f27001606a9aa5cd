// The figures of the organization, of accounts and of creators: how they are named and shown.

import type { Base } from "../charts/ticks.ts";
import { compact, exact, gain, rate } from "../format.ts";
import type { View } from "../state/view.ts";

export const FIGURES = [
  "views",
  "likes",
  "comments",
  "shares",
  "engagement",
  "engagement_rate",
  "followers",
  "new_posts",
] as const;
export type Figure = (typeof FIGURES)[number];
/** The figure that the address chooses. */
export function figureOf({ filters }: View): Figure {
  return FIGURES.find((figure) => figure === filters.get("figure")) ?? "views";
}

/** What series of single accounts and creators are of: there are none of a rate. */
export const SERIES_FIGURES = [
  "views",
  "likes",
  "comments",
  "shares",
  "engagement",
  "followers",
  "new_posts",
] as const satisfies Figure[];

/** The figure of a series beside a figure. */
export function seriesFigure(figure: Figure | null): (typeof SERIES_FIGURES)[number] {
  return SERIES_FIGURES.find((series) => series === figure) ?? "views";
}

export const FIGURE_NAMES: Readonly<Record<Figure, string>> = {
  views: "Views",
  likes: "Likes",
  comments: "Comments",
  shares: "Shares",
  engagement: "Engagement",
  engagement_rate: "Engagement rate",
  followers: "Followers",
  new_posts: "New posts",
};

type Format = (value: number | null) => string;

/** How a figure's value over a window is shown. */
export function shortFormat(figure: Figure): Format {
  if (figure === "engagement_rate") return rate;
  return figure === "new_posts" ? compact : gain;
}

/** How a chart shows a figure. Followers are a level, everything else belongs to its day. */
export function chartOf(figure: Figure): { title: string; format: Format; base: Base; isRate: boolean } {
  const isLevel = figure === "followers";
  const isRate = figure === "engagement_rate";
  const title = `${FIGURE_NAMES[figure]} ${isLevel ? "at the end of each day" : "per day"}`;
  return { title, format: isRate ? rate : exact, base: isLevel ? "least" : "zero", isRate };
}
