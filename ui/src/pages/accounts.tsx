// Accounts: every tracked account with what it gained and whether it is updating, and adding more.

import { useMemo, useState } from "preact/hooks";
import { mayWrite } from "../api/identity.ts";

import { type PagedResource, usePages, useTotal } from "../api/pages.ts";
import { useColumnChoice } from "../components/column-choice.tsx";
import { Compared } from "../components/compared.tsx";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { ExportButton } from "../components/export.tsx";
import {
  daysColumn,
  GainsProblem,
  gainColumn,
  MoreButton,
  RATE,
  type Shown,
} from "../components/gain-columns.tsx";
import {
  CardMenu,
  CardTitle,
  Count,
  Empty,
  Entity,
  ProblemNotice,
  Status,
  WindowNote,
} from "../components/parts.tsx";
import { selectColumn } from "../components/select-column.tsx";
import * as css from "../components/table.module.css";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { exact } from "../format.ts";
import {
  type AccountPage,
  type AccountRow,
  accountOrder,
  canRank,
  compareAccounts,
  countAccounts,
  fetchAccounts,
  listFilters,
} from "../loads/account-rows.ts";
import { totalsComparison } from "../loads/overview.ts";
import { linkTo, ranksChange, setFilters, view, windowParameters } from "../state/view.ts";
import { reasonOf } from "../tracking-reason.ts";
import { AddAccounts } from "./accounts/add.tsx";
import { useArrivals } from "./accounts/arrivals.ts";
import { AccountFilters, isFiltered } from "./accounts/filters.tsx";
import { useRowMenu } from "./accounts/row-menu.tsx";
import { SelectionBar } from "./accounts/selection.tsx";
import type { PageProps } from "./props.ts";

const ACCOUNT: Column<AccountRow> = {
  name: "Account",
  isName: true,
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
  csv: (row) => row.tracking.status,
  render: ({ tracking }) => {
    // What a pause means is said by its title.
    const reason = tracking && !tracking.status.startsWith("paused") && reasonOf(tracking);
    return tracking ? (
      <div class={reason ? css.explained : css.why}>
        <Status status={tracking.status} />
        {reason && <small class="small quiet">{reason}</small>}
      </div>
    ) : (
      "–"
    );
  },
};

const POSTS: Column<AccountRow> = {
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
    daysColumn(shown),
    ...gainColumn("Engagement", "engagement", shown),
    RATE,
    ...(shown.ranked ? [] : [POSTS]),
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

export default function AccountsPage({ identity }: PageProps) {
  const current = view.value;
  // What a key may do has its room before that is known.
  const canWrite = mayWrite(identity) ?? true;
  const shown = [...current.filters].filter(([name]) => name !== "add" && name !== "accounts");
  const order = accountOrder(current);
  const pages = usePages<AccountPage>(
    JSON.stringify([current.range, current.platform, shown, totalsComparison(current)]),
    (cursor, signal) => fetchAccounts(current, cursor, signal),
    { sort: order.text, comparison: (page) => compareAccounts(order, page) },
  );
  const total = useTotal(pages, (signal) => countAccounts(current, signal));
  useArrivals(pages);
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Accounts</h1>
          <Usage identity={identity} matching={isFiltered() ? total : null} />
          <WindowNote meta={pages.data?.page.meta} />
        </div>
        {canWrite && (
          <button
            type="button"
            class="primary"
            aria-expanded={current.filters.has("add")}
            onClick={() => setAdding(!current.filters.has("add"))}
          >
            Add accounts
          </button>
        )}
        <Controls />
      </div>
      {canWrite && current.filters.has("add") && (
        <AddAccounts onAdded={pages.refresh} onClose={() => setAdding(false)} />
      )}
      <Compared
        kind="accounts"
        names={pages.data && new Map(pages.data.rows.map(({ id, username }) => [id, `@${username}`]))}
        code={() => import("./comparison.tsx")}
      />
      <AccountFilters />
      <GainsProblem pages={pages} />
      <AccountsCard pages={pages} canWrite={canWrite} />
      <MoreButton pages={pages} total={total} />
    </>
  );
}

interface UsageProps extends Pick<PageProps, "identity"> {
  /** How many accounts match the filters, if there are any. */
  matching: number | null;
}

function Usage({ identity: { data }, matching }: UsageProps) {
  if (!data) return <p class="quiet small">{"\u00a0"}</p>;
  const { accounts, account_cap } = data.usage;
  return (
    <p class="quiet small">
      {matching !== null && <>{exact(matching)} of </>}
      {exact(accounts)} tracked
      {matching === null && account_cap !== null && <> of {exact(account_cap)}</>}
    </p>
  );
}

interface CardProps {
  pages: PagedResource<AccountPage>;
  canWrite: boolean;
}

function AccountsCard({ pages, canWrite }: CardProps) {
  const [selected, select] = useState<ReadonlySet<string>>(new Set());
  const [outcome, setOutcome] = useState("");
  const setSelected = (ids: ReadonlySet<string>, outcome = "") => {
    select(ids);
    setOutcome(outcome);
  };
  const rows = pages.data?.rows ?? [];
  const ids = rows.map(({ id }) => id).filter((id) => selected.has(id));
  const order = accountOrder(view.value);
  const { order: loaded, problem: gainsProblem } = pages.data?.page ?? { order, problem: null };
  const hasChange = ranksChange(view.value, loaded.metric);
  const isRankable = canRank(view.value);
  const all = useMemo(
    () => columns({ ranked: loaded.metric, hasChange, canRank: isRankable }),
    [loaded.metric, hasChange, isRankable],
  );
  const choice = useColumnChoice("accounts", all);
  const shown = useMemo(() => choice.shown, [all, choice.hidden]);
  const rowMenu = useRowMenu(canWrite, (outcome) => {
    pages.refresh();
    setOutcome(outcome);
  });
  // Rows in another order are the same page.
  const selectable = useMemo(
    () => [
      selectColumn({ rows, selected, select: setSelected, nameOf: ({ username }) => `@${username}` }),
      ...shown,
      rowMenu.column,
    ],
    [pages.data?.page, selected, shown],
  );
  return (
    <section class={`card ${css.dense}`} aria-label="Accounts" aria-busy={pages.status === "loading"}>
      {ids.length > 0 ? (
        <SelectionBar
          ids={ids}
          canWrite={canWrite}
          onChanged={(outcome) => {
            pages.refresh();
            setSelected(new Set(), outcome);
          }}
          onClear={() => setSelected(new Set())}
        />
      ) : (
        <header>
          <CardTitle
            title={loaded.metric ? "By what they gained" : "All accounts"}
            note={<span role="status">{outcome}</span>}
          />
          <div class="controls">
            {choice.control}
            <CardMenu title="Accounts" urls={pages.requests}>
              <CsvButton
                title="Accounts"
                columns={[...shown.slice(0, 1), ...DETAILS, ...shown.slice(1)]}
                rows={rows}
              />
              <ExportButton
                name="accounts"
                query={{ ...windowParameters(view.value.range), ...listFilters(view.value) }}
              />
            </CardMenu>
          </div>
        </header>
      )}
      <ProblemNotice of={pages} />
      {!pages.data && !pages.problem && <div class="skeleton rows" />}
      {pages.data?.rows.length === 0 && <NoAccounts canWrite={canWrite} />}
      {rows.length > 0 && (
        <Table
          title="Accounts"
          columns={selectable}
          rows={rows}
          rowKey={(row) => row.id}
          sort={(gainsProblem ? loaded : order).text}
        />
      )}
      {rowMenu.menu}
    </section>
  );
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
