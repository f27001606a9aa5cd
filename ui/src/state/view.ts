// What a page shows, as far as its address says it: reload, back and a shared link show the same. A default is left out of the
// address, and an invalid value falls back to the default.

import { signal } from "@preact/signals-core";

import { COUNTER_METRICS, COUNTERS, METRICS, type Metric } from "./metrics.ts";
import { keepScroll } from "./place.ts";
import { hasToday, parseRange, type Range } from "./range.ts";
import { SHARE_PATH } from "./share.ts";

export {
  daysOf,
  hasToday,
  MAX_SERIES_DAYS,
  type Range,
  rangeDays,
  utcToday,
  windowParameters,
  yearBefore,
} from "./range.ts";

export const PLATFORMS = ["instagram", "tiktok"] as const;
export type Platform = (typeof PLATFORMS)[number];

/** The period before, or the same days of the year before. */
export const COMPARISONS = ["previous", "year"] as const;
export type Comparison = (typeof COMPARISONS)[number];

export interface View {
  path: string;
  range: Range;
  /** What the days of the page are compared with. */
  compare: Comparison | null;
  platform: Platform | null;
  /** What the charts and rankings of the page are of. */
  metric: Metric;
  /** What a chart of counters shows of each day. */
  values: "gains" | "cumulative";
  /** The order of the page's table: the name of a metric or of a field, after a `-` if descending; empty for the page's own. */
  sort: string;
  /** Other parameters, of single pages. */
  filters: ReadonlyMap<string, string>;
}

/** What belongs to one page and its record: links to others leave it. */
const OWN = {
  metric: "views",
  values: "gains",
  sort: "",
  filters: new Map(),
} as const satisfies Partial<View>;

const SHARED = new Set([
  "period",
  "start_date",
  "end_date",
  "include_today",
  "compare",
  "platform",
  "metric",
  "figure",
  "counter",
  "values",
  "sort",
]);
function one<T extends string>(value: string | null, values: readonly T[]): T | null {
  return values.find((candidate) => candidate === value) ?? null;
}

/** Older addresses call it `figure`, or `counter` and by the API's names; a `metric` beside them was of other pages. */
function parseMetric(query: URLSearchParams): Metric | null {
  const counter = COUNTER_METRICS.find((metric) => COUNTERS[metric] === query.get("counter"));
  return one(query.get("figure"), METRICS) ?? counter ?? one(query.get("metric"), METRICS);
}

export function parseView(path: string, search: string): View {
  const query = new URLSearchParams(search);
  return {
    path,
    range: parseRange(query),
    compare: query.get("compare") === "none" ? null : (one(query.get("compare"), COMPARISONS) ?? "previous"),
    platform: one(query.get("platform"), PLATFORMS),
    metric: parseMetric(query) ?? OWN.metric,
    values: query.get("values") === "cumulative" ? "cumulative" : OWN.values,
    sort: query.get("sort") ?? OWN.sort,
    filters: new Map([...query].filter(([name, value]) => !SHARED.has(name) && value !== "")),
  };
}

export function formatView(view: View): string {
  const query = new URLSearchParams();
  const { range } = view;
  if (range.period === "custom") {
    query.set("period", "custom");
    query.set("start_date", range.start ?? "");
    query.set("end_date", range.end ?? "");
  } else {
    // A share has a default of its own.
    if (range.period !== "30d" || view.path === SHARE_PATH) query.set("period", range.period);
    if (range.includeToday) query.set("include_today", "true");
  }
  if (view.compare !== "previous") query.set("compare", view.compare ?? "none");
  if (view.platform) query.set("platform", view.platform);
  for (const name of ["metric", "values", "sort"] as const)
    if (view[name] !== OWN[name]) query.set(name, view[name]);
  for (const [name, value] of view.filters) query.set(name, value);
  const text = query.toString();
  return text ? `${view.path}?${text}` : view.path;
}

/** Whether the page says how its numbers changed. */
export function showsChange({ compare, range }: View): boolean {
  return compare !== null && !hasToday(range);
}

/** Whether entries of a ranking say how theirs changed. Of other years, nothing says how many posts were new. */
export function ranksChange(view: View, metric: Metric = "views"): boolean {
  return showsChange(view) && (view.compare === "previous" || metric !== "new_posts");
}

/** The page that is shown. Set by `navigate` and the browser's history only. */
export const view = signal<View>(
  typeof location === "undefined" ? parseView("/", "") : parseView(location.pathname, location.search),
);

/** Shows another view; `replace` adds no entry to the browser's history. */
export function navigate(change: Partial<View>, { replace = false } = {}): void {
  const next = { ...view.value, ...change };
  // The fragment, if any, belongs to the page.
  const address = formatView(next) + (change.path ? "" : location.hash);
  if (!replace) keepScroll();
  if (replace) history.replaceState(history.state, "", address);
  else history.pushState(null, "", address);
  view.value = next;
  if (change.path && !replace) scrollTo(0, 0);
}

/** Sets filters of this page; null and empty text remove one. What is typed letter by letter replaces the entry of the history. */
export function setFilters(
  changes: Readonly<Record<string, string | null>>,
  options: { replace?: boolean } = {},
): void {
  const filters = new Map(view.value.filters);
  for (const [name, value] of Object.entries(changes)) {
    if (value) filters.set(name, value);
    else filters.delete(name);
  }
  navigate({ filters }, options);
}

/** Before the name of a tag of the accounts that a page filters by. */
export const TAG_PREFIX = "metadata.";

/** Whether every list has the filter. */
function isKept(name: string): boolean {
  return name === "creator_id" || name === "category" || name.startsWith(TAG_PREFIX);
}

type Query = Readonly<Record<string, string>>;

interface LinkOptions {
  /** Whether it leads to all records, of all platforms, instead of those that the page filters by. */
  isUnfiltered?: boolean;
}

/** Another page, which keeps range, comparison and what every list filters by; `query` is its own part of the address. */
function otherPage(
  path: string,
  { sort = OWN.sort, ...filters }: Query,
  { isUnfiltered = false }: LinkOptions,
): View {
  const current = view.peek();
  const kept = [...current.filters].filter(([name]) => !isUnfiltered && isKept(name));
  return {
    ...current,
    ...OWN,
    path,
    sort,
    platform: isUnfiltered ? null : current.platform,
    filters: new Map([...kept, ...Object.entries(filters)]),
  };
}

/** The API takes no more. */
export const MAX_TAGS = 3;

/** The tags that a page filters by, with their prefix. */
export function tagFilters({ filters }: View): [name: string, value: string][] {
  return [...filters].filter(([name]) => name.startsWith(TAG_PREFIX)).slice(0, MAX_TAGS);
}

/** Which accounts a page is about, as parameters of the API. */
export interface LabelParameters {
  category?: string;
  metadata?: Record<string, string>;
}

export function labelParameters(view: View): LabelParameters {
  const [category, tags] = [view.filters.get("category"), tagFilters(view)];
  return {
    ...(category ? { category } : {}),
    ...(tags.length > 0 ? { metadata: Object.fromEntries(tags) } : {}),
  };
}

/** The filters that every list has, as parameters of the API. */
export function scopeParameters(view: View): LabelParameters & { creator_id?: string } {
  const creator_id = view.filters.get("creator_id");
  return { ...(creator_id ? { creator_id } : {}), ...labelParameters(view) };
}

/**
 * A link to another page. It does not subscribe: the frame is rendered again for every view, and each row of a table need not
 * know it.
 */
export function linkTo(path: string, query: Query = {}, options: LinkOptions = {}): string {
  return formatView(otherPage(path, query, options));
}

export function goTo(path: string, query: Query = {}, options: LinkOptions = {}): void {
  navigate(otherPage(path, query, options));
}

/** Shows the view of the address when the browser goes back or forward, and follows links without loading the page again. */
export function followHistory(isPage: (path: string) => boolean): void {
  addEventListener("popstate", () => {
    view.value = parseView(location.pathname, location.search);
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain =
      event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (
      !link ||
      !isPlain ||
      link.target ||
      link.origin !== location.origin ||
      event.defaultPrevented ||
      !isPage(link.pathname)
    )
      return;
    event.preventDefault();
    navigate(parseView(link.pathname, link.search));
  });
}
