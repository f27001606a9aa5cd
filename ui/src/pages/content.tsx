// Content: every post by what it gained in the window, or by its counters and age, to the end of the table.

import { useLayoutEffect, useState } from "preact/hooks";

import { useDetails } from "../api/details.ts";
import { usePages, useTotal } from "../api/pages.ts";
import { mapResource } from "../api/resource.ts";
import { Sparkline } from "../charts/line.tsx";
import { useColumnChoice } from "../components/column-choice.tsx";
import { Compared } from "../components/compared.tsx";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { ExportButton } from "../components/export.tsx";
import { MoreButton } from "../components/gain-columns.tsx";
import { Card, Count, Empty, Entity, ProblemNotice, WindowNote } from "../components/parts.tsx";
import { ScopeFilters } from "../components/scope-filters.tsx";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import { day, exact, gain, plural, times } from "../format.ts";
import {
  type ContentDetail,
  type ContentRow,
  type ContentPage as ContentRows,
  contentFilters,
  contentMetric,
  contentOrder,
  countContent,
  fetchContent,
  fetchContentDetails,
  PAGE_SIZE,
  UNUSUAL_FILTERS,
  unusualQuery,
  type WindowMeta,
} from "../loads/content-rows.ts";
import {
  CONTENT_METRICS,
  type ContentMetric,
  isUnknown,
  knownViews,
  METRIC_NAMES,
} from "../state/metrics.ts";
import { linkTo, navigate, setFilters, type View, view, windowParameters } from "../state/view.ts";
import { PostCalendar } from "./content/calendar.tsx";
import { ContentFilters, filterName, LISTED_FILTERS } from "./content/filters.tsx";
import { ContentGrid, GridSkeleton } from "./content/grid.tsx";
import { usePostSelection } from "./content/selection.tsx";
import * as css from "./content.module.css";

const SORT_NAMES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(CONTENT_METRICS.map((metric) => [`-${metric}`, `${METRIC_NAMES[metric]} gained`])),
  ...Object.fromEntries(CONTENT_METRICS.map((metric) => [metric, `${METRIC_NAMES[metric]} lost`])),
  "-create_time": "Newest",
  create_time: "Oldest",
  "-view_count": "Most views in all",
  view_count: "Fewest views in all",
  "-like_count": "Most likes in all",
  like_count: "Fewest likes in all",
  "-play_count": "Most plays in all",
  play_count: "Fewest plays in all",
  "-multiple": "× usual",
  "-added_at": "Added last",
  added_at: "Added first",
};

const ROW_HEIGHT = 40;

type Row = ContentRow & { detail: ContentDetail | undefined };

/** Unknown if a counter was never known that it is of: engagement is likes, comments and shares. */
function gainOf(row: Row, metric: ContentMetric): number | null {
  if (isUnknown(row, metric)) return null;
  return (row.gains ?? row.detail?.gains)?.[metric] ?? null;
}

/** How much better than usual a post did; of the order by that only. */
const USUAL: readonly Column<Row>[] = [
  {
    name: "× usual",
    isNumber: true,
    csv: ({ usual }) => usual?.multiple,
    render: ({ usual }) =>
      usual && (
        <b
          title={`${exact(usual.actual)} views at this age; ${usual.sample} earlier posts of the account had ${exact(usual.baseline)} on average`}
        >
          {times(usual.multiple)}
        </b>
      ),
  },
  { name: "Usual views", csv: ({ usual }) => usual?.baseline },
];

function columns(metric: ContentMetric, today: number, isUnusual: boolean, q: string): Column<Row>[] {
  return [
    { name: "Id", csv: (row) => row.id },
    {
      name: "Post",
      isName: true,
      csv: (row) => row.description,
      render: (row) => (
        <Entity
          id={row.account_id ?? row.id}
          kind="cover"
          src={row.cover_image_url}
          href={linkTo(`/content/${row.id}`)}
          name={row.description || "Post without a caption"}
          needles={[q]}
          owner={row.account_username ?? PLATFORM_NAMES[row.platform]}
          detail={[
            row.account_username ? `@${row.account_username}` : "tracked alone",
            `${PLATFORM_NAMES[row.platform]} ${row.media_type ?? ""}`,
          ].join(" · ")}
        />
      ),
    },
    { name: "Platform", csv: (row) => row.platform },
    { name: "Account", csv: (row) => row.account_username },
    { name: "Creator", csv: (row) => row.creator_name },
    { name: "Link", csv: (row) => row.url },
    {
      name: "Posted",
      sort: "create_time",
      csv: (row) => row.create_time,
      render: (row) => (
        <span class="nowrap">{row.create_time ? day(row.create_time.slice(0, 10)) : "–"}</span>
      ),
    },
    ...(isUnusual ? USUAL : []),
    {
      name: "Views in all",
      sort: "view_count",
      isNumber: true,
      csv: knownViews,
      render: (row) => <Count value={knownViews(row)} />,
    },
    {
      name: "Per day",
      render: ({ detail }) => (
        <SparkCell values={detail?.series} label={`${METRIC_NAMES[metric]} gained per day`} today={today} />
      ),
    },
    ...CONTENT_METRICS.map(
      (name): Column<Row> => ({
        name: `${METRIC_NAMES[name]} gained`,
        sort: name,
        isNumber: true,
        csv: (row) => gainOf(row, name),
        render: (row) => (row.gains ?? row.detail) && <Count value={gainOf(row, name)} format={gain} />,
      }),
    ),
  ];
}

type Meta = WindowMeta | undefined;

export default function ContentPage() {
  const [meta, setMeta] = useState<Meta>(undefined);
  const isCalendar = layoutOf(view.value) === "calendar";
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Content</h1>
          <WindowNote meta={isCalendar ? undefined : meta} />
        </div>
        <Controls hasComparison={false} />
      </div>
      <ScopeFilters
        hasCollection
        first={<TextFilter label="Filter by caption" placeholder="Caption contains" />}
        names={LISTED_FILTERS}
      >
        <ContentFilters />
      </ScopeFilters>
      <Toolbar />
      {isCalendar ? <PostCalendar /> : <PostList onMeta={setMeta} />}
    </>
  );
}

const LAYOUTS = { table: "Table", grid: "Grid", calendar: "Calendar" } as const;
type Layout = keyof typeof LAYOUTS;

function layoutOf({ filters }: View): Layout {
  return (Object.keys(LAYOUTS) as Layout[]).find((layout) => layout === filters.get("layout")) ?? "table";
}

function Toolbar() {
  const order = contentOrder(view.value);
  const shown = layoutOf(view.value);
  return (
    <div class={css.toolbar}>
      <select
        aria-label="Sort"
        value={order.text}
        onChange={(event) => navigate({ sort: event.currentTarget.value })}
      >
        {Object.entries(SORT_NAMES).map(([sort, name]) => (
          <option key={sort} value={sort}>
            {name}
          </option>
        ))}
      </select>
      {order.field === "multiple" && <MinMultiple />}
      <div class={css.segments} role="group" aria-label="Layout">
        {(Object.keys(LAYOUTS) as Layout[]).map((layout) => (
          <button
            key={layout}
            type="button"
            aria-pressed={layout === shown}
            onClick={() => setFilters({ layout: layout === "table" ? null : layout })}
          >
            {LAYOUTS[layout]}
          </button>
        ))}
      </div>
    </div>
  );
}

function PostList({ onMeta }: { onMeta: (meta: Meta) => void }) {
  const current = view.value;
  const { layout, posts, ...filters } = Object.fromEntries(current.filters);
  const order = contentOrder(current);
  const metric = contentMetric(current);
  const pages = usePages<ContentRows>(
    JSON.stringify([current.range, current.platform, metric, filters]),
    (cursor, signal) => fetchContent(current, cursor, signal),
    { sort: order.text },
  );
  const total = useTotal(pages, (signal) => countContent(current, signal));
  const details = useDetails(pages.data?.rows, (ids, signal) => fetchContentDetails(current, ids, signal));
  const resource = mapResource(pages, ({ rows }) =>
    rows.map((row): Row => ({ ...row, detail: details.data?.details.get(row.id) })),
  );
  const rows = resource.data;
  const isComplete = details.problem || rows?.every(({ detail }) => detail !== undefined);
  const meta = pages.data?.page.meta ?? details.data?.meta;
  useLayoutEffect(() => onMeta(meta), [meta]);
  const isUnusual = order.field === "multiple";
  const choice = useColumnChoice("content", columns(metric, sparkToday(meta), isUnusual, filters.q ?? ""));
  const isGrid = layout === "grid";
  const selection = usePostSelection(rows);
  return (
    <>
      <Compared
        kind="posts"
        names={
          rows && new Map(rows.map(({ id, description }) => [id, description || "Post without a caption"]))
        }
        code={() => import("./comparison.tsx")}
      />
      <Card
        title="Posts"
        note={isUnusual ? unusualNote(current) : `sorted by: ${SORT_NAMES[order.text]?.toLowerCase()}`}
        resource={resource}
        requests={details.data?.requests ?? details.requests}
        height={!rows && !isGrid ? PAGE_SIZE * ROW_HEIGHT : 0}
        {...(isGrid ? { placeholder: <GridSkeleton count={PAGE_SIZE} /> } : {})}
        actions={
          <>
            {!isGrid && selection.action}
            {!isGrid && choice.control}
          </>
        }
        menu={
          <>
            <CsvButton title="Content" columns={choice.shown} rows={(isComplete && rows) || []} />
            <ExportButton
              name="content"
              query={{ ...windowParameters(current.range), ...contentFilters(current) }}
            />
          </>
        }
      >
        {(rows) => (
          <>
            <ProblemNotice of={details} />
            {rows.length === 0 && (
              <Empty>
                {current.filters.size > 0 || current.platform
                  ? "No post matches."
                  : "No post is known yet. Those of an account appear within a minute after it is added."}
              </Empty>
            )}
            {rows.length > 0 &&
              (isGrid ? (
                <ContentGrid rows={rows} gainOf={(row) => gainOf(row as Row, metric)} gainName={metric} />
              ) : (
                <Table
                  title="Content"
                  columns={[...selection.columns, ...choice.shown]}
                  rows={rows}
                  rowKey={(row) => row.id}
                  sort={order.text}
                  isDense
                />
              ))}
          </>
        )}
      </Card>
      {pages.problem?.status === 503 && order.metric && (
        <p>
          Sorted by age, posts can be listed without these numbers.{" "}
          <button type="button" onClick={() => navigate({ sort: "-create_time" }, { replace: true })}>
            Show the newest
          </button>
        </p>
      )}
      <MoreButton pages={pages} total={total} />
    </>
  );
}

/** Which posts are compared, and how. */
function unusualNote(view: View): string {
  const { posted_after, age_days } = unusualQuery(view);
  const ignored = ["q", ...LISTED_FILTERS].filter(
    (name) => view.filters.has(name) && !UNUSUAL_FILTERS.some((filter) => filter === name),
  );
  const note = `posts since ${day(posted_after)}, by views after ${plural(age_days, "day")} beside those of earlier posts of the account`;
  return ignored.length > 0
    ? `${note}; the filters by ${ignored.map(filterName).join(", ")} do not apply`
    : note;
}

/** How much better than usual the listed posts are at least. */
function MinMultiple() {
  return (
    <select
      aria-label="At least"
      value={view.value.filters.get("min_multiple") ?? ""}
      onChange={(event) => setFilters({ min_multiple: event.currentTarget.value })}
    >
      <option value="">at least as usual</option>
      {[2, 3, 5, 10].map((multiple) => (
        <option key={multiple} value={multiple}>
          at least {multiple} × usual
        </option>
      ))}
    </select>
  );
}

/** As large before its values are there. */
function SparkCell({
  values,
  label,
  today,
}: {
  values: readonly (number | null)[] | null | undefined;
  label: string;
  today: number;
}) {
  return (
    <span class={css.sparkCell}>{values && <Sparkline values={values} label={label} today={today} />}</span>
  );
}

/** Position of the day that is not over in a series of the window; -1 without. */
function sparkToday(meta: WindowMeta | undefined): number {
  if (!meta || meta.complete_through >= meta.end_date) return -1;
  return (Date.parse(meta.complete_through) - Date.parse(meta.start_date)) / 86_400_000 + 1;
}
