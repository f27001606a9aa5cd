// Who and what is in a collection, by what it gained in the window. In a client's report, no row leads to a page of the dashboard.

import type { ComponentChildren } from "preact";

import { type Page, type PagedResource, usePages } from "../../api/pages.ts";
import { mapResource, useResource } from "../../api/resource.ts";
import { PLATFORM_NAMES } from "../../components/controls.tsx";
import { MoreButton } from "../../components/gain-columns.tsx";
import { MarkButton, markChanges, mayMark } from "../../components/marks.tsx";
import { Card, Count, Empty, Entity, UNSEEN } from "../../components/parts.tsx";
import type { Option } from "../../components/picker.tsx";
import { Breakouts } from "../../components/rankings.tsx";
import { useSeen } from "../../components/seen.ts";
import { type Column, CsvButton, Table } from "../../components/table.tsx";
import { gain, plural, postedOn, rate } from "../../format.ts";
import {
  fetchReportAccounts,
  fetchReportContent,
  fetchReportCreators,
  fetchReportHashtags,
  type ReportSource,
} from "../../loads/collections.ts";
import { ALL_BREAKOUTS, breakoutQuery } from "../../loads/rankings.ts";
import {
  CONTENT_METRICS,
  type ContentMetric,
  isUnknown,
  knownViews,
  METRIC_NAMES,
  metricOf,
} from "../../state/metrics.ts";
import { linkTo, type View, view } from "../../state/view.ts";
import * as css from "../collection.module.css";

interface Ranking<Row, Meta> {
  data: Row[];
  meta: Meta;
  pagination: { next_cursor?: string | null };
}

interface RankingPage<Row, Meta> extends Page<Row> {
  meta: Meta;
}

/** A ranking that grows: starts over for another window, platform or metric. */
function useRanking<Row, Meta>(
  source: ReportSource,
  fetch: (
    source: ReportSource,
    view: View,
    cursor: string | null,
    signal: AbortSignal,
  ) => Promise<Ranking<Row, Meta>>,
): PagedResource<RankingPage<Row, Meta>> {
  const current = view.value;
  const metric = metricOf(CONTENT_METRICS, current.metric);
  return usePages(
    JSON.stringify([source, current.range, current.platform, metric, markChanges.value]),
    async (cursor, signal) => {
      const { data, meta, pagination } = await fetch(source, current, cursor, signal);
      return { rows: data, meta, next: pagination.next_cursor ?? null };
    },
    { sort: "" },
  );
}

interface RankingCardProps<Row extends { id: string }, Meta> {
  title: string;
  pages: PagedResource<RankingPage<Row, Meta>>;
  columns: readonly Column<Row>[];
  empty: string;
  /** Below the table. */
  foot?: (meta: Meta) => ComponentChildren;
}

function RankingCard<Row extends { id: string }, Meta>({
  title,
  pages,
  columns,
  empty,
  foot,
}: RankingCardProps<Row, Meta>) {
  const rows = pages.data?.rows ?? [];
  return (
    <Card
      title={title}
      note={`by ${METRIC_NAMES[metricOf(CONTENT_METRICS, view.value.metric)].toLowerCase()} gained`}
      resource={mapResource(pages, ({ rows }) => rows)}
      requests={pages.data?.requests ?? []}
      height={120}
      menu={<CsvButton title={title} columns={columns} rows={rows} />}
    >
      {(rows) => (
        <div class={css.ranking}>
          {rows.length === 0 ? (
            <Empty>{empty}</Empty>
          ) : (
            <Table title={title} columns={columns} rows={rows} rowKey={({ id }) => id} isDense />
          )}
          {(foot || pages.hasMore) && (
            <div class="after">
              {foot && pages.data && foot(pages.data.page.meta)}
              <MoreButton pages={pages} />
            </div>
          )}
        </div>
      )}
    </Card>
  );
}

function number<Row>(name: string, value: (row: Row) => number | null, isGain = false): Column<Row> {
  return {
    name,
    isNumber: true,
    csv: value,
    render: (row) => (isGain ? <Count value={value(row)} format={gain} /> : <Count value={value(row)} />),
  };
}

interface Gained {
  metrics: Record<ContentMetric, number>;
}

function gainColumn<Row extends Gained>(
  gainOf: (row: Row, metric: ContentMetric) => number | null = ({ metrics }, metric) => metrics[metric],
): Column<Row> {
  const metric = metricOf(CONTENT_METRICS, view.value.metric);
  return number(`${METRIC_NAMES[metric]} gained`, (row) => gainOf(row, metric), true);
}

type Post = Awaited<ReturnType<typeof fetchReportContent>>["data"][number];

function postGain(post: Post, metric: ContentMetric): number | null {
  return isUnknown(post, metric) ? null : post.metrics[metric];
}

type Account = Awaited<ReturnType<typeof fetchReportAccounts>>["data"][number];
type Creator = Awaited<ReturnType<typeof fetchReportCreators>>["data"][number];

function isOf(source: ReportSource): "client" | "member" {
  return "token" in source ? "client" : "member";
}

/** Marks by hand, unless a client looks. */
function markColumns(collection: Option | undefined): Column<Post>[] {
  if (!collection || !mayMark.value) return [];
  return [
    {
      name: "Collection",
      isControl: true,
      render: (row) => <MarkButton id={row.id} caption={row.description} collection={collection} />,
    },
  ];
}

interface PostsProps {
  source: ReportSource;
  /** That of the report. */
  collection?: Option | undefined;
}

export function Posts({ source, collection }: PostsProps) {
  const pages = useRanking(source, fetchReportContent);
  const columns: Column<Post>[] = [
    {
      name: "Post",
      isName: true,
      csv: (row) => row.description,
      render: (row) => (
        <Entity
          id={row.account_id ?? row.id}
          kind="cover"
          src={row.cover_image_url}
          href={isOf(source) === "client" ? row.url : linkTo(`/content/${row.id}`)}
          name={row.description || "Post without a caption"}
          owner={row.account_username ?? PLATFORM_NAMES[row.platform]}
          detail={[
            row.account_username ? `@${row.account_username}` : "",
            PLATFORM_NAMES[row.platform],
            row.create_time ? postedOn(row.create_time) : "",
          ]
            .filter(Boolean)
            .join(" · ")}
        />
      ),
    },
    { name: "Platform", csv: (row) => row.platform },
    { name: "Account", csv: (row) => row.account_username },
    { name: "Link", csv: (row) => row.url },
    { name: "Posted", csv: (row) => row.create_time },
    number("Views in all", knownViews),
    gainColumn(postGain),
    ...(metricOf(CONTENT_METRICS, view.value.metric) === "engagement"
      ? []
      : [number<Post>("Engagement gained", (row) => postGain(row, "engagement"), true)]),
    {
      name: "Rate",
      isNumber: true,
      csv: (row) => row.metrics.engagement_rate,
      render: (row) => (
        <span title={String(row.metrics.engagement_rate ?? "–")}>{rate(row.metrics.engagement_rate)}</span>
      ),
    },
    ...markColumns(collection),
  ];
  return <RankingCard title="Posts" pages={pages} columns={columns} empty="No post is in this collection." />;
}

interface Rest {
  without_account: { videos: number; metrics: Record<ContentMetric, number> };
}

/** Posts that no row of a ranking counts. */
function without(name: string) {
  return ({ without_account: { videos, metrics } }: Rest) => {
    const metric = metricOf(CONTENT_METRICS, view.value.metric);
    return (
      videos > 0 && (
        <p class="quiet small">
          {plural(videos, "post")} without {name}: <Count value={metrics[metric]} format={gain} />
        </p>
      )
    );
  };
}

export function Accounts({ source }: { source: ReportSource }) {
  const pages = useRanking(source, fetchReportAccounts);
  const columns: Column<Account>[] = [
    {
      name: "Account",
      isName: true,
      csv: (row) => row.username,
      render: (row) => (
        <Entity
          id={row.id}
          src={row.profile_pic_url}
          href={isOf(source) === "client" ? null : linkTo(`/accounts/${row.id}`)}
          name={`@${row.username}`}
          detail={
            <>
              {PLATFORM_NAMES[row.platform]}
              {row.creator_name && (
                <>
                  {" "}
                  · <bdi>{row.creator_name}</bdi>
                </>
              )}
            </>
          }
        />
      ),
    },
    { name: "Platform", csv: (row) => row.platform },
    number("Posts", (row) => row.videos),
    number("Views in all", (row) => row.lifetime.views),
    gainColumn(),
  ];
  return (
    <RankingCard
      title="Accounts"
      pages={pages}
      columns={columns}
      empty="No account has a post in this collection."
      foot={without("an account")}
    />
  );
}

export function Creators({ source }: { source: ReportSource }) {
  const pages = useRanking(source, fetchReportCreators);
  const columns: Column<Creator>[] = [
    {
      name: "Creator",
      isName: true,
      csv: (row) => row.name,
      render: (row) => (
        <Entity
          id={row.id}
          href={isOf(source) === "client" ? null : linkTo(`/creators/${row.id}`)}
          name={row.name}
        />
      ),
    },
    number("Posts", (row) => row.videos),
    number("Views in all", (row) => row.lifetime.views),
    gainColumn(),
  ];
  return (
    <RankingCard
      title="Creators"
      pages={pages}
      columns={columns}
      empty="No creator has a post in this collection."
      foot={without("a creator")}
    />
  );
}

type Hashtag = Awaited<ReturnType<typeof fetchReportHashtags>>["data"][number];

/** What is loaded when it comes near the screen: the rest of the report is as many requests as a page should send. */
export function Below({ collection_id }: { collection_id: string }) {
  const [element, isSeen] = useSeen<HTMLDivElement>();
  return (
    <div ref={element} class="columns wide">
      <Breakouts
        title="Breakouts"
        query={breakoutQuery(view.value, { collection_id })}
        all={linkTo("/content", { ...ALL_BREAKOUTS, collection_id })}
        isWanted={isSeen}
      />
      <Hashtags collection_id={collection_id} isWanted={isSeen} />
    </div>
  );
}

function Hashtags({ collection_id, isWanted }: { collection_id: string; isWanted: boolean }) {
  const current = view.value;
  const metric = metricOf(CONTENT_METRICS, current.metric);
  const resource = useResource(
    isWanted ? (signal) => fetchReportHashtags(collection_id, current, signal) : null,
    [collection_id, JSON.stringify(current.range), current.platform, metric, markChanges.value],
    { isBelow: true },
  );
  const columns: Column<Hashtag>[] = [
    {
      name: "Hashtag",
      csv: (row) => row.hashtag,
      render: ({ hashtag }) => (
        <a href={linkTo("/content", { collection_id, hashtag })} dir="auto">
          #{hashtag}
        </a>
      ),
    },
    number("Posts", (row) => row.videos),
    gainColumn(),
  ];
  return (
    <Card
      title="Hashtags"
      note={`by ${METRIC_NAMES[metric].toLowerCase()} gained`}
      resource={resource}
      height={64}
      idle={UNSEEN}
      menu={<CsvButton title="Hashtags" columns={columns} rows={resource.data?.data ?? []} />}
    >
      {({ data }) =>
        data.length === 0 ? (
          <Empty>None of the posts has a hashtag.</Empty>
        ) : (
          <Table title="Hashtags" columns={columns} rows={data} rowKey={({ hashtag }) => hashtag} />
        )
      }
    </Card>
  );
}
