// Accounts: every tracked account with what it gained and whether it is updating, and adding more.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Identity } from "../api/client.ts";
import { asCurl } from "../api/requests.ts";
import { Sparkline } from "../charts/line.tsx";
import { AccountFilters, isFiltered } from "../components/account-filters.tsx";
import {
  type AccountPage,
  type AccountRow,
  accountSort,
  canRank,
  compareAccounts,
  fetchAccounts,
  listFilters,
} from "../components/account-rows.ts";
import { AddAccounts } from "../components/add-accounts.tsx";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { CopyButton } from "../components/copy.tsx";
import { ExportButton } from "../components/export.tsx";
import type { Figure } from "../components/figures.ts";
import type { PageProps } from "../components/frame.tsx";
import { sortText } from "../components/gain-rows.ts";
import { type PagedRows, usePages } from "../components/pages.ts";
import {
  CardTitle,
  Change,
  Count,
  Empty,
  Entity,
  ProblemNotice,
  Status,
  WindowNote,
} from "../components/parts.tsx";
import { SelectionBar } from "../components/selection.tsx";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { reasonOf } from "../components/tracking-reason.ts";
import { gain, rate } from "../format.ts";
import { linkTo, setFilters, view, windowParameters } from "../state/view.ts";

/** How often the table loads again while accounts wait for their first read. */
const PENDING_RELOAD_MS = 5_000;

const ACCOUNT: Column<AccountRow> = {
  name: "Account",
  sort: "username",
  csv: (row) => row.username,
  render: ({ id, username, platform, name, creator_name, profile_pic_url }) => (
    <Entity
      id={id}
      href={linkTo(`/accounts/${id}`)}
      name={`@${username}`}
      src={profile_pic_url}
      detail={[PLATFORM_NAMES[platform], creator_name ?? name].filter(Boolean).join(" · ")}
    />
  ),
};
/** In the CSV on their own; on screen, below the name. */
const DETAILS: readonly Column<AccountRow>[] = [
  { name: "Platform", csv: (row) => row.platform },
  { name: "Creator", csv: (row) => row.creator_name },
];
const STATUS: Column<AccountRow> = {
  name: "Status",
  csv: (row) => row.tracking?.status ?? null,
  render: ({ tracking }) => {
    const reason = tracking && reasonOf(tracking);
    return tracking ? (
      <div class="why">
        <Status status={tracking.status} />
        {reason && <small class="small quiet">{reason}</small>}
      </div>
    ) : (
      "–"
    );
  },
};

type Gain = "views" | "engagement" | "followers";

interface Shown {
  /** What the rows were loaded as a ranking by. */
  ranked: Figure | null;
  hasChange: boolean;
  canRank: boolean;
}

/** A gain, and how it changed if the rows are ranked by it. */
function gainColumn(
  name: string,
  gainName: Gain,
  { ranked, hasChange, canRank }: Shown,
): Column<AccountRow>[] {
  const isRanked = ranked === gainName && hasChange;
  const column: Column<AccountRow> = {
    name,
    isNumber: true,
    isDescending: true,
    csv: (row) => row.gains?.[gainName],
    ...(canRank ? { sort: gainName } : {}),
    render: (row) => (
      <span class="stacked">
        <Count value={row.gains?.[gainName]} format={gain} />
        {isRanked && <Change percent={row.change_percent} />}
      </span>
    ),
  };
  return isRanked
    ? [column, { name: `Change of ${name.toLowerCase()}`, csv: (row) => row.change_percent }]
    : [column];
}

const OF_RANKING: Column<AccountRow> = {
  name: "Rate",
  sort: "engagement_rate",
  isDescending: true,
  isNumber: true,
  csv: (row) => row.engagement_rate,
  render: (row) => <span title={String(row.engagement_rate ?? "–")}>{rate(row.engagement_rate)}</span>,
};
const OF_LIST: Column<AccountRow> = {
  name: "Posts",
  sort: "total_post_count",
  isNumber: true,
  csv: (row) => row.total_post_count,
  render: (row) => <Count value={row.total_post_count} />,
};

function columns(shown: Shown): Column<AccountRow>[] {
  return [
    ACCOUNT,
    ...gainColumn("Views", "views", shown),
    {
      name: "Per day",
      render: (row) =>
        row.series ? (
          <Sparkline
            values={row.series}
            today={row.today}
            label="Per day"
            base={shown.ranked === "followers" ? "least" : "zero"}
          />
        ) : null,
    },
    ...gainColumn("Engagement", "engagement", shown),
    shown.ranked ? OF_RANKING : OF_LIST,
    {
      name: "Followers",
      sort: "follower_count",
      isNumber: true,
      csv: (row) => row.follower_count,
      render: (row) => <Count value={row.follower_count} />,
    },
    ...gainColumn("New followers", "followers", shown),
    STATUS,
  ];
}

function setAdding(isAdding: boolean): void {
  setFilters({ add: isAdding ? "1" : null });
}

/** Loads again while accounts wait for their first read, so that their posts appear, and once after it: pictures are copied later. */
function useArrivals({ rows, reload, isLoading }: PagedRows<AccountPage>): void {
  const isWaiting = rows?.some(({ tracking }) => tracking?.status === "pending") ?? false;
  const hasWaited = useRef(false);
  useEffect(() => {
    if (isLoading || !(isWaiting || hasWaited.current)) return;
    hasWaited.current = isWaiting;
    const timer = setTimeout(reload, PENDING_RELOAD_MS);
    return () => clearTimeout(timer);
  }, [isWaiting, isLoading]);
}

export function AccountsPage({ identity }: PageProps) {
  const current = view.value;
  const canWrite = identity?.scopes.includes("write") ?? false;
  const shown = [...current.filters].filter(([name]) => name !== "add" && name !== "sort");
  const sort = accountSort(current);
  const pages = usePages<AccountPage>(
    JSON.stringify([current.range, current.platform, current.metric, shown]),
    (cursor, signal) => fetchAccounts(current, cursor, signal),
    { sort: sortText(sort), comparison: (page) => compareAccounts(sort, page) },
  );
  useArrivals(pages);
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Accounts</h1>
          <Usage identity={identity} />
          <WindowNote meta={pages.page?.meta ?? undefined} />
        </div>
        {(canWrite || !identity) && (
          <button
            type="button"
            class={`primary${identity ? "" : " unknown"}`}
            aria-expanded={current.filters.has("add")}
            onClick={() => setAdding(!current.filters.has("add"))}
          >
            Add accounts
          </button>
        )}
        <Controls />
      </div>
      {canWrite && current.filters.has("add") && (
        <AddAccounts onAdded={pages.reload} onClose={() => setAdding(false)} />
      )}
      <AccountFilters />
      {pages.page?.problem && <ProblemNotice problem={pages.page.problem} retry={pages.reload} />}
      <AccountsCard pages={pages} canWrite={canWrite} />
      {pages.hasMore && (
        <p class="more">
          <button type="button" onClick={pages.loadMore} disabled={pages.isLoading}>
            {pages.isLoading ? "Loading…" : "Show more"}
          </button>
        </p>
      )}
    </>
  );
}

function Usage({ identity }: { identity: Identity | null }) {
  if (!identity) return <p class="quiet small">{"\u00a0"}</p>;
  const { accounts, account_cap } = identity.usage;
  return (
    <p class="quiet small">
      <Count value={accounts} /> tracked
      {account_cap !== null && (
        <>
          {" "}
          of <Count value={account_cap} />
        </>
      )}
    </p>
  );
}

interface CardProps {
  pages: PagedRows<AccountPage>;
  canWrite: boolean;
}

function AccountsCard({ pages, canWrite }: CardProps) {
  const [selected, select] = useState<ReadonlySet<string>>(new Set());
  const [outcome, setOutcome] = useState("");
  const setSelected = (ids: ReadonlySet<string>, outcome = "") => {
    select(ids);
    setOutcome(outcome);
  };
  const rows = pages.rows ?? [];
  const ids = rows.map(({ id }) => id).filter((id) => selected.has(id));
  const sort = accountSort(view.value);
  const { sort: loaded = sort, problem: gainsProblem = null } = pages.page ?? {};
  const { compare: hasChange } = view.value;
  const isRankable = canRank(view.value);
  const shown = useMemo(
    () => columns({ ranked: loaded.gain, hasChange, canRank: isRankable }),
    [loaded.gain, hasChange, isRankable],
  );
  // Rows in another order are the same page.
  const selectable = useMemo(
    () => (canWrite ? [selectColumn(rows, selected, setSelected), ...shown] : shown),
    [canWrite, pages.page, selected, shown],
  );
  return (
    <section class="card dense" aria-label="Accounts" aria-busy={pages.isLoading}>
      {ids.length > 0 ? (
        <SelectionBar
          ids={ids}
          onChanged={(outcome) => {
            pages.reload();
            setSelected(new Set(), outcome);
          }}
          onClear={() => setSelected(new Set())}
        />
      ) : (
        <header>
          <CardTitle
            title={loaded.gain ? "By what they gained" : "All accounts"}
            note={<span role="status">{outcome}</span>}
          />
          <div class="controls">
            <CsvButton
              title="Accounts"
              columns={[...shown.slice(0, 1), ...DETAILS, ...shown.slice(1)]}
              rows={rows}
            />
            <ExportButton
              name="accounts"
              query={{ ...windowParameters(view.value.range), ...listFilters(view.value) }}
            />
            <CopyButton
              label="curl"
              title="Copy as curl"
              text={() => asCurl(pages.requests)}
              disabled={pages.requests.length === 0}
            />
          </div>
        </header>
      )}
      {pages.problem && <ProblemNotice problem={pages.problem} retry={pages.retry} />}
      {pages.rows === null && !pages.problem && <div class="skeleton rows" />}
      {pages.rows?.length === 0 && <NoAccounts canWrite={canWrite} />}
      {rows.length > 0 && (
        <Table
          title="Accounts"
          columns={selectable}
          rows={rows}
          rowKey={(row) => row.id}
          sort={sortText(gainsProblem ? loaded : sort)}
        />
      )}
    </section>
  );
}

function selectColumn(
  rows: readonly AccountRow[],
  selected: ReadonlySet<string>,
  setSelected: (ids: ReadonlySet<string>) => void,
): Column<AccountRow> {
  const toggle = (id: string) =>
    setSelected(
      selected.has(id) ? new Set([...selected].filter((one) => one !== id)) : new Set([...selected, id]),
    );
  const isAll = rows.every(({ id }) => selected.has(id));
  return {
    name: "Select",
    heading: (
      <label class="target">
        <input
          type="checkbox"
          aria-label="Select all that are shown"
          checked={isAll}
          onChange={() => setSelected(new Set(isAll ? [] : rows.map(({ id }) => id)))}
        />
      </label>
    ),
    render: ({ id, username }) => (
      <label class="target">
        <input
          type="checkbox"
          aria-label={`Select @${username}`}
          checked={selected.has(id)}
          onChange={() => toggle(id)}
        />
      </label>
    ),
  };
}

function NoAccounts({ canWrite }: { canWrite: boolean }) {
  if (isFiltered()) return <Empty>No account matches these filters.</Empty>;
  if (!canWrite)
    return <Empty>No accounts are tracked yet. Adding them requires a key with the scope write.</Empty>;
  return (
    <Empty>
      No accounts are tracked yet.{" "}
      <button type="button" class="primary" onClick={() => setAdding(true)}>
        Add the first ones
      </button>
    </Empty>
  );
}
