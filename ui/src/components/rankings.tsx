// What gained most in a window: content, accounts, creators.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import type { paths } from "../api/schema.d.ts";
import { day, gain } from "../format.ts";
import { linkTo } from "../state/view.ts";
import { CsvButton, Table, type Column } from "./table.tsx";
import { Card, Change, Count, Empty, Entity } from "./parts.tsx";

type Query<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never;

interface Props<Path extends keyof paths> {
  title: string;
  query: Query<Path>;
}

interface RankingCardProps<Row> {
  title: string;
  /** Identifies the request. */
  query: object;
  load: (signal: AbortSignal) => Promise<{ data: Row[] }>;
  columns: readonly Column<Row>[];
}

function RankingCard<Row extends { id: string }>({ title, query, load, columns }: RankingCardProps<Row>) {
  const resource = useResource(load, [JSON.stringify(query)]);
  return (
    <Card title={title} resource={resource} height={320} actions={<CsvButton title={title} columns={columns} rows={resource.data?.data ?? []} />}>
      {({ data }) => data.length === 0 ? <Empty>Nothing gained in this period.</Empty> : <Table title={title} columns={columns} rows={data} rowKey={(row) => row.id} />}
    </Card>
  );
}

type Metrics<Metric extends string> = { metrics: Record<Metric, number | null> };

function gainColumn<Metric extends string, Row extends Metrics<Metric>>(metric: Metric): Column<Row> {
  return { name: "Gained", isNumber: true, csv: (row) => row.metrics[metric], render: (row) => <Count value={row.metrics[metric]} format={gain} /> };
}

function changeColumn<Row extends { change_percent: number | null }>(): Column<Row> {
  return { name: "Change", isNumber: true, csv: (row) => row.change_percent, render: (row) => <Change percent={row.change_percent} /> };
}

type Response<Path extends "/content/top" | "/accounts/top" | "/creators/top"> =
  paths[Path]["get"]["responses"][200]["content"]["application/json"]["data"][number];

const CONTENT: Column<Response<"/content/top">> = {
  name: "Post",
  csv: (row) => row.description,
  render: (row) => (
    <Entity id={row.id} kind="cover" href={linkTo(`/content/${row.id}`)} name={row.description || "Post without a caption"}
      detail={`${row.account_username ? `@${row.account_username}` : "tracked alone"}${row.create_time ? ` · ${day(row.create_time.slice(0, 10))}` : ""}`} />
  ),
};
const ACCOUNT: Column<Response<"/accounts/top">> = {
  name: "Account",
  csv: (row) => row.username,
  render: (row) => <Entity id={row.id} href={linkTo(`/accounts/${row.id}`)} name={`@${row.username}`} detail={row.creator_name ?? row.name} />,
};
const CREATOR: Column<Response<"/creators/top">> = {
  name: "Creator",
  csv: (row) => row.name,
  render: (row) => <Entity id={row.id} href={linkTo(`/creators/${row.id}`)} name={row.name} detail={`${row.account_count} ${row.account_count === 1 ? "account" : "accounts"}`} />,
};

export function RankedContent({ title, query }: Props<"/content/top">) {
  const load = (signal: AbortSignal) => unwrap(api.GET("/content/top", { params: { query }, signal }));
  return <RankingCard title={title} query={query} load={load} columns={[CONTENT, gainColumn(query.metric ?? "views")]} />;
}

export function RankedAccounts({ title, query }: Props<"/accounts/top">) {
  const load = (signal: AbortSignal) => unwrap(api.GET("/accounts/top", { params: { query }, signal }));
  return <RankingCard title={title} query={query} load={load} columns={[ACCOUNT, gainColumn(query.metric ?? "views"), changeColumn()]} />;
}

export function RankedCreators({ title, query }: Props<"/creators/top">) {
  const load = (signal: AbortSignal) => unwrap(api.GET("/creators/top", { params: { query }, signal }));
  return <RankingCard title={title} query={query} load={load} columns={[CREATOR, gainColumn(query.metric ?? "views"), changeColumn()]} />;
}
