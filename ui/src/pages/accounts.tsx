// Accounts: every tracked account with what it gained, and adding more.

import { useState } from "preact/hooks";

import { api, unwrap } from "../api/client.ts";
import { Sparkline } from "../charts/line.tsx";
import { AddAccounts } from "../components/add-accounts.tsx";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { usePages, type Page } from "../components/pages.ts";
import { Count, Empty, Entity, ProblemNotice, Status } from "../components/parts.tsx";
import { CsvButton, Table, type Column } from "../components/table.tsx";
import type { PageProps } from "../components/frame.tsx";
import { gain } from "../format.ts";
import { linkTo, navigate, view, windowParameters, type View } from "../state/view.ts";

const PAGE_SIZE = 50;
const SORTS = ["added_at", "username", "last_scrape_time", "follower_count", "view_count", "total_post_count", "next_attempt_at"] as const;
const STATUSES = ["active", "pending", "failing", "paused", "paused_by_creator", "unavailable", "unsupported"] as const;

async function fetchPage(view: View, cursor: string | null, signal: AbortSignal) {
  const sort = view.filters.get("sort") ?? "-follower_count";
  const order_by = SORTS.find((name) => name === sort.replace("-", "")) ?? "follower_count";
  const status = STATUSES.find((status) => status === view.filters.get("status"));
  const { data: accounts, pagination } = await unwrap(api.GET("/accounts", {
    params: {
      query: {
        limit: PAGE_SIZE, order_by, order_direction: sort.startsWith("-") ? "desc" : "asc",
        ...(view.platform ? { platform: view.platform } : {}),
        ...(view.filters.has("q") ? { q: view.filters.get("q") ?? "" } : {}),
        ...(status ? { status: [status] } : {}),
        ...(cursor ? { cursor } : {}),
      },
    },
    signal,
  }));
  if (accounts.length === 0) return { rows: [], next: null };
  const window = windowParameters(view.range);
  const account_ids = accounts.map(({ id }) => id);
  const [metrics, series] = await Promise.all([
    unwrap(api.GET("/accounts/metrics", { params: { query: { ...window, account_ids } }, signal })),
    unwrap(api.GET("/accounts/timeseries", { params: { query: { ...window, account_ids, metric: view.metric } }, signal })).catch(() => null),
  ]);
  const rows = accounts.map((account) => ({ ...account, gains: metrics.data[account.id], series: series?.data[account.id] ?? null }));
  return { rows, next: pagination.next_cursor ?? null };
}

type Row = Awaited<ReturnType<typeof fetchPage>>["rows"][number];

const COLUMNS: readonly Column<Row>[] = [
  {
    name: "Account", sort: "username", csv: (row) => row.username,
    render: (row) => <Entity id={row.id} href={linkTo(`/accounts/${row.id}`)} name={`@${row.username}`} detail={row.creator_name ?? row.name} />,
  },
  { name: "Platform", csv: (row) => row.platform, render: (row) => PLATFORM_NAMES[row.platform] },
  { name: "Status", csv: (row) => row.tracking.status, render: ({ tracking }) => <Status status={tracking.status} title={tracking.last_error ?? undefined} /> },
  { name: "Followers", sort: "follower_count", isNumber: true, csv: (row) => row.follower_count, render: (row) => <Count value={row.follower_count} /> },
  { name: "Posts", sort: "total_post_count", isNumber: true, csv: (row) => row.total_post_count, render: (row) => <Count value={row.total_post_count} /> },
  { name: "Views gained", isNumber: true, csv: (row) => row.gains?.views ?? null, render: (row) => <Count value={row.gains?.views} format={gain} /> },
  { name: "Engagement", isNumber: true, csv: (row) => row.gains?.engagement ?? null, render: (row) => <Count value={row.gains?.engagement} format={gain} /> },
  { name: "Followers gained", isNumber: true, csv: (row) => row.gains?.followers ?? null, render: (row) => <Count value={row.gains?.followers} format={gain} /> },
  { name: "Per day", render: (row) => (row.series ? <Sparkline values={row.series} label="Gained per day" /> : null) },
];

export function AccountsPage({ identity }: PageProps) {
  const current = view.value;
  const [isAdding, setAdding] = useState(false);
  const key = JSON.stringify([current.range, current.platform, current.metric, [...current.filters]]);
  const pages = usePages<Row>(key, (cursor, signal) => fetchPage(current, cursor, signal) as Promise<Page<Row>>);
  const filter = (name: string, value: string) => {
    const filters = new Map(current.filters);
    if (value) filters.set(name, value);
    else filters.delete(name);
    navigate({ filters }, { replace: true });
  };
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Accounts</h1>
          {identity && <p class="quiet small"><Count value={identity.usage.accounts} /> tracked</p>}
        </div>
        <Controls />
      </div>
      <div class="controls">
        <input type="search" aria-label="Filter by username" placeholder="Username" value={current.filters.get("q") ?? ""} onChange={(event) => filter("q", event.currentTarget.value.trim())} />
        <select aria-label="Status" value={current.filters.get("status") ?? ""} onChange={(event) => filter("status", event.currentTarget.value)}>
          <option value="">Any status</option>
          {STATUSES.map((status) => <option key={status} value={status}>{status.replaceAll("_", " ")}</option>)}
        </select>
        {identity?.scopes.includes("write") && <button type="button" class="primary" onClick={() => setAdding(!isAdding)}>Add accounts</button>}
      </div>
      {isAdding && <AddAccounts onAdded={pages.reload} />}
      <section class="card" aria-label="Accounts" aria-busy={pages.isLoading}>
        <header><h2>Accounts</h2><CsvButton title="Accounts" columns={COLUMNS} rows={pages.rows ?? []} /></header>
        {pages.problem && <ProblemNotice problem={pages.problem} retry={pages.reload} />}
        {pages.rows === null && !pages.problem && <div class="skeleton" style={{ height: "600px" }} />}
        {pages.rows?.length === 0 && <Empty>No account matches. Add accounts by username or profile link.</Empty>}
        {pages.rows && pages.rows.length > 0 && <Table title="Accounts" columns={COLUMNS} rows={pages.rows} rowKey={(row) => row.id} />}
      </section>
      {pages.hasMore && <button type="button" onClick={pages.loadMore} disabled={pages.isLoading}>Show more</button>}
    </>
  );
}
