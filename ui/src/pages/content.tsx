// Content: every post by what it gained in the window, or by its counters and age, to the end of the table.

import { api, unwrap } from "../api/client.ts";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { usePages, type Page } from "../components/pages.ts";
import { Count, Empty, Entity, ProblemNotice } from "../components/parts.tsx";
import { CsvButton, Table, type Column } from "../components/table.tsx";
import { day, gain } from "../format.ts";
import { METRICS, linkTo, navigate, view, windowParameters, type Platform, type View } from "../state/view.ts";

const PAGE_SIZE = 50;
/** Counters and times that the list sorts by. */
const LIST_SORTS = ["create_time", "view_count", "like_count", "play_count", "added_at"] as const;

interface Row {
  id: string;
  platform: Platform;
  url: string | null;
  description: string | null;
  media_type: string | null;
  create_time: string | null;
  account_id: string | null;
  account_username: string | null;
  view_count: number;
  gains: { views: number; likes: number; comments: number; shares: number; engagement: number } | null;
}

function filters({ platform, filters }: View) {
  const text = (name: string) => (filters.has(name) ? { [name]: filters.get(name) ?? "" } : {});
  const minViews = Number(filters.get("min_views"));
  return {
    ...(platform ? { platform } : {}),
    ...text("account_id"), ...text("creator_id"), ...text("posted_after"), ...text("q"),
    ...(Number.isInteger(minViews) && minViews > 0 ? { min_views: minViews } : {}),
  };
}

/** Sorted by a gain: the ranking, to its end. Sorted by anything else: the list, and the gains of its rows. */
async function fetchPage(view: View, cursor: string | null, signal: AbortSignal): Promise<Page<Row>> {
  const sort = view.filters.get("sort") ?? `-${view.metric}`;
  const order_by = LIST_SORTS.find((name) => name === sort.replace("-", ""));
  const window = windowParameters(view.range);
  const page = { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
  if (!order_by) {
    const metric = METRICS.find((name) => `-${name}` === sort) ?? view.metric;
    const { data, pagination } = await unwrap(api.GET("/content/top", { params: { query: { ...window, ...filters(view), ...page, metric, include_all: true } }, signal }));
    return { rows: data.map((row) => ({ ...row, gains: row.metrics })), next: pagination.next_cursor ?? null };
  }
  const order_direction = sort.startsWith("-") ? ("desc" as const) : ("asc" as const);
  const { data, pagination } = await unwrap(api.GET("/content", { params: { query: { ...filters(view), ...page, order_by, order_direction } }, signal }));
  if (data.length === 0) return { rows: [], next: null };
  const video_ids = data.map(({ id }) => id);
  const gains = await unwrap(api.GET("/videos/metrics", { params: { query: { ...window, video_ids } }, signal }));
  return { rows: data.map((row) => ({ ...row, gains: gains.data[row.id] ?? null })), next: pagination.next_cursor ?? null };
}

const COLUMNS: readonly Column<Row>[] = [
  {
    name: "Post", csv: (row) => row.description,
    render: (row) => (
      <Entity id={row.id} kind="cover" href={linkTo(`/content/${row.id}`)} name={row.description || "Post without a caption"}
        detail={row.account_username ? `@${row.account_username}` : "tracked alone"} />
    ),
  },
  { name: "Platform", csv: (row) => row.platform, render: (row) => PLATFORM_NAMES[row.platform] },
  { name: "Posted (UTC)", sort: "create_time", csv: (row) => row.create_time, render: (row) => (row.create_time ? day(row.create_time.slice(0, 10)) : "–") },
  { name: "Views", sort: "view_count", isNumber: true, csv: (row) => row.view_count, render: (row) => <Count value={row.view_count} /> },
  ...METRICS.map((metric): Column<Row> => ({
    name: `${metric[0]?.toUpperCase()}${metric.slice(1)} gained`, sort: metric, isNumber: true,
    csv: (row) => row.gains?.[metric] ?? null, render: (row) => <Count value={row.gains?.[metric]} format={gain} />,
  })),
];

export function ContentPage() {
  const current = view.value;
  const key = JSON.stringify([current.range, current.platform, current.metric, [...current.filters]]);
  const pages = usePages<Row>(key, (cursor, signal) => fetchPage(current, cursor, signal));
  const filter = (name: string, value: string) => {
    const next = new Map(current.filters);
    if (value) next.set(name, value);
    else next.delete(name);
    navigate({ filters: next }, { replace: true });
  };
  return (
    <>
      <div class="page-head"><div class="grow"><h1>Content</h1><p class="quiet small">Gains of the range, beside counters of all time · days in UTC</p></div><Controls /></div>
      <div class="controls">
        <input type="search" aria-label="Filter by caption" placeholder="Caption" value={current.filters.get("q") ?? ""} onChange={(event) => filter("q", event.currentTarget.value.trim())} />
        <input type="number" min={0} aria-label="At least so many views" placeholder="Views from" value={current.filters.get("min_views") ?? ""} onChange={(event) => filter("min_views", event.currentTarget.value)} />
        <label class="small">Posted since <input type="date" value={current.filters.get("posted_after") ?? ""} onChange={(event) => filter("posted_after", event.currentTarget.value)} /></label>
      </div>
      <section class="card" aria-label="Content" aria-busy={pages.isLoading}>
        <header><h2>Posts</h2><CsvButton title="Content" columns={COLUMNS} rows={pages.rows ?? []} /></header>
        {pages.problem && <ProblemNotice problem={pages.problem} retry={pages.reload} />}
        {pages.rows === null && !pages.problem && <div class="skeleton" style={{ height: "600px" }} />}
        {pages.rows?.length === 0 && <Empty>No post matches.</Empty>}
        {pages.rows && pages.rows.length > 0 && <Table title="Content" columns={COLUMNS} rows={pages.rows} rowKey={(row) => row.id} />}
      </section>
      {pages.hasMore && <button type="button" onClick={pages.loadMore} disabled={pages.isLoading}>Show more</button>}
    </>
  );
}
