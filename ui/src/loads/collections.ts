// Collections: the list, one of them, and its report, which a share's token reaches as well.

import { api, countOf, unwrap } from "../api/client.ts";
import type { Page } from "../api/pages.ts";
import type { components, paths } from "../api/schema.d.ts";
import { CONTENT_METRICS, metricOf } from "../state/metrics.ts";
import { type View, windowParameters } from "../state/view.ts";
import { daysBeside, totalsBeside } from "./year-before.ts";

export type Collection = components["schemas"]["Collection"];
export type SharedReport = components["schemas"]["SharedReport"];
export type SharePart = components["schemas"]["SharePart"];

/** Whose report: of a collection, for whoever is signed in, or the one that a share's token reaches. */
export type ReportSource = { collection_id: string } | { token: string };

const PAGE_SIZE = 50;
/** Rows that a table of a report begins with. */
const REPORT_ROWS = 25;
/** The list sorts by these. */
const SORTS = ["name", "-name", "added_at", "-added_at"] as const;

export async function fetchCollections(
  { sort, filters }: View,
  cursor: string | null,
  signal: AbortSignal,
): Promise<Page<Collection>> {
  const q = filters.get("q");
  const query = {
    limit: PAGE_SIZE,
    sort: SORTS.find((candidate) => candidate === sort) ?? ("name" as const),
    ...(q ? { q } : {}),
    ...(cursor ? { cursor } : {}),
  };
  const { data, pagination } = await unwrap(api.GET("/collections", { params: { query }, signal }));
  return { rows: data, next: pagination.next_cursor ?? null };
}

export async function countCollections({ filters }: View, signal: AbortSignal): Promise<number | null> {
  const q = filters.get("q");
  const query = { ...(q ? { q } : {}), limit: 1, include_total: true };
  return countOf(api.GET("/collections", { params: { query }, signal }));
}

export async function fetchCollection(collection_id: string, signal: AbortSignal): Promise<Collection> {
  return (
    await unwrap(api.GET("/collections/{collection_id}", { params: { path: { collection_id } }, signal }))
  ).data;
}

function bearer(token: string) {
  return { Authorization: `Bearer ${token}` };
}

/** What a share shows, and how it is called. Each request counts as a view. */
export async function fetchShare(token: string, signal: AbortSignal): Promise<SharedReport> {
  return (await unwrap(api.GET("/shared", { headers: bearer(token), signal }))).data;
}

/** Whether a share still works: asks for one of its parts, which counts no view. */
export async function testShare(token: string, part: SharePart, signal: AbortSignal): Promise<void> {
  const query = { period: "7d" as const };
  const options = { headers: bearer(token), params: { query }, signal };
  await unwrap<unknown>(api.GET(`/shared/${part}`, options));
}

function windowOf({ range, platform }: View) {
  return { ...windowParameters(range), ...(platform ? { platform } : {}) };
}

function rankingOf(view: View, cursor: string | null) {
  return {
    ...windowOf(view),
    metric: metricOf(CONTENT_METRICS, view.metric),
    limit: REPORT_ROWS,
    ...(cursor ? { cursor } : {}),
  };
}

/** Parts of a report that a share has as well, under the same names. */
type ReportPart = "overview" | "timeseries" | "accounts" | "creators" | "payouts";
type Own<Part extends ReportPart> = paths[`/collections/{collection_id}/${Part}`]["get"];
type Shared<Part extends ReportPart> = paths[`/shared/${Part}`]["get"];
type Answer<Part extends ReportPart> = (
  | Own<Part>
  | Shared<Part>
)["responses"][200]["content"]["application/json"];
type Query<Part extends ReportPart> = NonNullable<Own<Part>["parameters"]["query"]>;

/** Asks for a part of a report: of the collection, or by the token of a share. */
function fetchPart<Part extends ReportPart>(
  part: Part,
  source: ReportSource,
  query: Query<Part>,
  signal: AbortSignal,
): Promise<Answer<Part>> {
  const get = api.GET as (
    path: string,
    options: object,
  ) => Promise<{ data?: Answer<Part>; error?: unknown; response: Response }>;
  return unwrap(
    "token" in source
      ? get(`/shared/${part}`, { headers: bearer(source.token), params: { query }, signal })
      : get(`/collections/{collection_id}/${part}`, { params: { path: source, query }, signal }),
  );
}

export async function fetchReportTotals(source: ReportSource, view: View, signal: AbortSignal) {
  return totalsBeside(view, (view) => fetchPart("overview", source, windowOf(view), signal));
}

export async function fetchReportDays(source: ReportSource, view: View, signal: AbortSignal) {
  return daysBeside(view, (view) => {
    const compare = view.compare === "previous" ? { compare: view.compare } : {};
    return fetchPart("timeseries", source, { ...windowOf(view), ...compare }, signal);
  });
}

export async function fetchReportContent(
  source: ReportSource,
  view: View,
  cursor: string | null,
  signal: AbortSignal,
) {
  const query = rankingOf(view, cursor);
  return "token" in source
    ? unwrap(api.GET("/shared/content", { headers: bearer(source.token), params: { query }, signal }))
    : unwrap(
        api.GET("/content/top", { params: { query: { ...query, ...source, include_all: true } }, signal }),
      );
}

export async function fetchReportAccounts(
  source: ReportSource,
  view: View,
  cursor: string | null,
  signal: AbortSignal,
) {
  return fetchPart("accounts", source, rankingOf(view, cursor), signal);
}

export async function fetchReportCreators(
  source: ReportSource,
  view: View,
  cursor: string | null,
  signal: AbortSignal,
) {
  return fetchPart("creators", source, rankingOf(view, cursor), signal);
}

/** Of all platforms. */
export async function fetchReportPayouts(
  source: ReportSource,
  { range }: View,
  group_by: "account" | "creator",
  signal: AbortSignal,
) {
  return fetchPart("payouts", source, { ...windowParameters(range), group_by }, signal);
}

export async function fetchReportHashtags(collection_id: string, view: View, signal: AbortSignal) {
  const query = { ...windowOf(view), collection_id, metric: metricOf(CONTENT_METRICS, view.metric) };
  return unwrap(api.GET("/content/hashtags", { params: { query }, signal }));
}
