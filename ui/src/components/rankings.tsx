// What gained most in a window: content, accounts, creators.

import { useMemo, useRef } from "preact/hooks";

import { useResource } from "../api/resource.ts";
import type { paths } from "../api/schema.d.ts";
import { day, exact, plural, postedOn, times } from "../format.ts";
import { fetchAccountGains, fetchCreatorGains } from "../loads/gain-rows.ts";
import { totalsComparison } from "../loads/overview.ts";
import {
  fetchBreakouts,
  fetchTopAccounts,
  fetchTopContent,
  fetchTopCreators,
  type RankingPath,
  type RankingQuery,
} from "../loads/rankings.ts";
import { entriesBeside } from "../loads/year-before.ts";
import { type ContentMetric, METRIC_NAMES, type RecordMetric, shortFormat } from "../state/metrics.ts";
import { linkTo, type Platform, ranksChange, view } from "../state/view.ts";
import { PLATFORM_NAMES } from "./controls.tsx";
import { MarkButton, mayMark } from "./marks.tsx";
import { Card, Change, Count, Empty, Entity, UNSEEN } from "./parts.tsx";
import { type Column, CsvButton, Table } from "./table.tsx";

/** Heights in pixels of a heading, of a row with a picture, and of the padding below a card that its table fills. */
const HEAD_HEIGHT = 32;
const ROW_HEIGHT = 56;
const PADDING = 16;
/** Rows that room is kept for while a longer ranking loads. */
const MAX_EXPECTED_ROWS = 10;

interface Props<Path extends RankingPath> {
  title: string;
  query: RankingQuery<Path>;
  /** The page that has all of them. */
  all?: string;
  isWanted?: boolean;
}

interface RankingCardProps<Row> {
  title: string;
  /** What it is sorted by. */
  note: string;
  /** Of an empty ranking. */
  empty?: string;
  /** Identifies the request. */
  query: { limit?: number };
  load: (signal: AbortSignal) => Promise<{ data: Row[] }>;
  /** By the metric, and what the page shows. */
  columns: () => readonly Column<Row>[];
  all?: string | undefined;
  /** Whether it is loaded; otherwise its room is kept. */
  isWanted?: boolean | undefined;
}

/** What links and columns depend on, besides the metric; while other data loads, that of the data shown. */
function useShownView(isLoading: boolean): string {
  const shown = useRef("");
  if (!isLoading || !shown.current) shown.current = linkTo("/");
  return shown.current;
}

function RankingCard<Row extends { id: string }>({
  title,
  note,
  empty = "Nothing gained in this period.",
  query,
  load,
  columns: findColumns,
  all,
  isWanted = true,
}: RankingCardProps<Row>) {
  const dependencies = [JSON.stringify(query), totalsComparison(view.value)];
  const resource = useResource(isWanted ? load : null, dependencies, { isBelow: true, isLive: true });
  const shown = useShownView(resource.status === "loading");
  const columns = useMemo(findColumns, [note, shown, mayMark.value]);
  const expected = Math.min(query.limit ?? MAX_EXPECTED_ROWS, MAX_EXPECTED_ROWS);
  const height = HEAD_HEIGHT + Math.max(1, resource.data?.data.length ?? expected) * ROW_HEIGHT - PADDING;
  return (
    <Card
      title={title}
      note={note}
      resource={resource}
      height={height}
      idle={UNSEEN}
      actions={
        all && (
          <a class="link small" href={all} aria-label={`${title}: all`}>
            All
          </a>
        )
      }
      menu={<CsvButton title={title} columns={columns} rows={resource.data?.data ?? []} />}
    >
      {({ data }) =>
        data.length === 0 ? (
          <Empty>{empty}</Empty>
        ) : (
          <Table title={title} columns={columns} rows={data} rowKey={(row) => row.id} />
        )
      }
    </Card>
  );
}

function byMetric(metric: RecordMetric = "views"): string {
  return `by ${METRIC_NAMES[metric].toLowerCase()}`;
}

/** A number of the metric, and how it changed unless the page compares nothing. */
function metricColumns<Metric extends RecordMetric, Row extends { metrics: Record<Metric, number | null> }>(
  metric: Metric,
): Column<Row>[] {
  return [
    {
      name: METRIC_NAMES[metric],
      isNumber: true,
      csv: (row) => row.metrics[metric],
      render: (row) => <Count value={row.metrics[metric]} format={shortFormat(metric)} />,
    },
  ];
}

interface Compared {
  metrics: Record<RecordMetric, number | null>;
  previous: Record<RecordMetric, number | null>;
  change_percent: number | null;
}

function comparedColumns<Row extends Compared>(metric: RecordMetric): Column<Row>[] {
  if (!ranksChange(view.value, metric)) return metricColumns(metric);
  return [
    ...metricColumns<RecordMetric, Row>(metric),
    {
      name: "Change",
      isNumber: true,
      csv: (row) => row.change_percent,
      render: (row) => (
        <Change percent={row.change_percent} current={row.metrics[metric]} previous={row.previous[metric]} />
      ),
    },
  ];
}

type Response<Path extends RankingPath> =
  paths[Path]["get"]["responses"][200]["content"]["application/json"]["data"][number];

type Post = Pick<
  Response<"/content/top">,
  "id" | "platform" | "description" | "account_id" | "account_username" | "cover_image_url" | "create_time"
>;

const CONTENT: Column<Post> = {
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
      owner={row.account_username ?? PLATFORM_NAMES[row.platform]}
      detail={`${row.account_username ? `@${row.account_username}` : "tracked alone"}${row.create_time ? ` · ${postedOn(row.create_time)}` : ""}`}
    />
  ),
};
const MARK: Column<Post> = {
  name: "Collections",
  isControl: true,
  render: (row) => <MarkButton id={row.id} caption={row.description} />,
};
const ACCOUNT: Column<Response<"/accounts/top">> = {
  name: "Account",
  isName: true,
  csv: (row) => row.username,
  render: (row) => (
    <Entity
      id={row.id}
      src={row.profile_pic_url}
      href={linkTo(`/accounts/${row.id}`)}
      name={`@${row.username}`}
      detail={
        <>
          {PLATFORM_NAMES[row.platform]} · <bdi>{row.creator_name ?? row.name ?? "no creator"}</bdi>
        </>
      }
    />
  ),
};
const PLATFORM: Column<{ platform: Platform }> = { name: "Platform", csv: (row) => row.platform };
const CREATOR: Column<Response<"/creators/top">> = {
  name: "Creator",
  isName: true,
  csv: (row) => row.name,
  render: (row) => (
    <Entity
      id={row.id}
      href={linkTo(`/creators/${row.id}`)}
      name={row.name}
      detail={`${row.account_count} ${row.account_count === 1 ? "account" : "accounts"}`}
    />
  ),
};

export function RankedContent({ title, query, all }: Props<"/content/top">) {
  const columns = () => [
    CONTENT,
    ...metricColumns<ContentMetric, Response<"/content/top">>(query.metric ?? "views"),
    ...(mayMark.value ? [MARK] : []),
  ];
  return (
    <RankingCard
      title={title}
      note={byMetric(query.metric)}
      query={query}
      load={(signal) => fetchTopContent(query, signal)}
      columns={columns}
      all={all}
    />
  );
}

const BREAKOUT: readonly Column<Response<"/content/breakouts">>[] = [
  CONTENT,
  { name: "Views", isNumber: true, csv: (row) => row.actual, render: (row) => <Count value={row.actual} /> },
  { name: "Usual", csv: (row) => row.baseline },
  { name: "Posts compared", csv: (row) => row.sample },
  {
    name: "× usual",
    isNumber: true,
    csv: (row) => row.multiple,
    render: (row) => (
      <b
        title={`The account’s ${row.sample} posts before it had ${exact(row.baseline)} on average: ${exact(row.multiple)} ×`}
      >
        {times(row.multiple)}
      </b>
    ),
  },
];

/** Posts that did far better than the earlier posts of their accounts at the same age. */
export function Breakouts({ title, query, all, isWanted }: Props<"/content/breakouts">) {
  return (
    <RankingCard
      title={title}
      note={`of posts since ${day(String(query.posted_after ?? ""))}, by views after ${plural(query.age_days ?? 7, "day")}`}
      query={query}
      load={(signal) => fetchBreakouts(query, signal)}
      columns={() => [...BREAKOUT, ...(mayMark.value ? [MARK] : [])]}
      empty="None of them did far better than usual."
      all={all}
      isWanted={isWanted}
    />
  );
}

export function RankedAccounts({ title, query, all }: Props<"/accounts/top">) {
  return (
    <RankingCard
      title={title}
      note={byMetric(query.metric)}
      query={query}
      load={async (signal) => {
        const { data } = await fetchTopAccounts(query, signal);
        return {
          data: await entriesBeside(view.peek(), query.metric ?? "views", data, fetchAccountGains(signal)),
        };
      }}
      columns={() => [
        PLATFORM,
        ACCOUNT,
        ...comparedColumns<Response<"/accounts/top">>(query.metric ?? "views"),
      ]}
      all={all}
    />
  );
}

export function RankedCreators({ title, query, all }: Props<"/creators/top">) {
  return (
    <RankingCard
      title={title}
      note={byMetric(query.metric)}
      query={query}
      load={async (signal) => {
        const { data } = await fetchTopCreators(query, signal);
        return {
          data: await entriesBeside(view.peek(), query.metric ?? "views", data, fetchCreatorGains(signal)),
        };
      }}
      columns={() => [CREATOR, ...comparedColumns<Response<"/creators/top">>(query.metric ?? "views")]}
      all={all}
    />
  );
}
