// The metrics: what they are called, what has them, and how they are shown.

import type { Base } from "../charts/ticks.ts";
import { compact, exact, gain, rate } from "../format.ts";

export const METRIC_NAMES = {
  views: "Views",
  likes: "Likes",
  comments: "Comments",
  shares: "Shares",
  saves: "Saves",
  plays: "Plays",
  engagement: "Engagement",
  engagement_rate: "Engagement rate",
  followers: "Followers",
  new_posts: "New posts",
} as const;
export type Metric = keyof typeof METRIC_NAMES;
export const METRICS = Object.keys(METRIC_NAMES) as Metric[];

/** What posts are ranked by. */
export const CONTENT_METRICS = [
  "views",
  "likes",
  "comments",
  "shares",
  "engagement",
] as const satisfies Metric[];
export type ContentMetric = (typeof CONTENT_METRICS)[number];

/** Of accounts, creators and the organization. */
export const RECORD_METRICS = [
  ...CONTENT_METRICS,
  "engagement_rate",
  "followers",
  "new_posts",
] as const satisfies Metric[];
export type RecordMetric = (typeof RECORD_METRICS)[number];

/** What timeseries of single accounts and creators are of: there are none of a rate. */
export const SERIES_METRICS = [...CONTENT_METRICS, "followers", "new_posts"] as const satisfies Metric[];

/** Of the history of a post, by the names of the API. */
export const COUNTERS = {
  views: "view_count",
  likes: "like_count",
  comments: "comment_count",
  shares: "share_count",
  saves: "saved_count",
  plays: "play_count",
} as const;
export type Counter = keyof typeof COUNTERS;
export const COUNTER_METRICS = Object.keys(COUNTERS) as Counter[];

/** Counters of a post that were never known, by the names of the API. */
interface KnownCounters {
  unknown_counters: readonly string[];
}

/** Whether what a post gained is unknown, because a counter never was. Engagement includes likes, which may be hidden. */
export function isUnknown({ unknown_counters }: KnownCounters, metric: ContentMetric): boolean {
  return unknown_counters.includes(COUNTERS[metric === "engagement" ? "likes" : metric]);
}

/** The views of a post in all; null if they were never known. */
export function knownViews(post: KnownCounters & { view_count: number }): number | null {
  return isUnknown(post, "views") ? null : post.view_count;
}

/** The metric if it is one of these, otherwise views, which everything has. */
export function metricOf<M extends Metric>(
  metrics: readonly (M | "views")[],
  metric: Metric | undefined,
): M | "views" {
  return metrics.find((candidate) => candidate === metric) ?? "views";
}

type Format = (value: number | null) => string;

/** How a metric's value over a window is shown. */
export function shortFormat(metric: Metric): Format {
  if (metric === "engagement_rate") return rate;
  return metric === "new_posts" ? compact : gain;
}

/** How a chart shows a metric. Followers are a level, everything else belongs to its day, or to what else a value is of. */
export function chartOf(
  metric: Metric,
  unit = "day",
): { title: string; format: Format; base: Base; isRate: boolean } {
  const isLevel = metric === "followers";
  const isRate = metric === "engagement_rate";
  const title = `${METRIC_NAMES[metric]} ${isLevel ? `at the end of each ${unit}` : `per ${unit}`}`;
  return { title, format: isRate ? rate : exact, base: isLevel ? "least" : "zero", isRate };
}
