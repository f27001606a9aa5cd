// One creator: what all its accounts gained together, each of them, its posts, and its settings.

import { useAction } from "../api/action.ts";
import { api, unwrap } from "../api/client.ts";
import { mayWrite } from "../api/identity.ts";
import { type Resource, useResource } from "../api/resource.ts";
import { LineChart } from "../charts/line.tsx";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { MetricSelect } from "../components/metric-tiles.tsx";
import {
  Card,
  Change,
  Count,
  Empty,
  Entity,
  ProblemNotice,
  RangeTooLong,
  WindowNote,
} from "../components/parts.tsx";
import { copyPath, Picture } from "../components/picture.tsx";
import { RankedContent } from "../components/rankings.tsx";
import { DailyGains, FollowersHistory, RecordMetrics, useRecordGains } from "../components/record-gains.tsx";
import { UnlinkedAccountPicker } from "../components/record-pickers.tsx";
import { RecordProblem } from "../components/record-problem.tsx";
import * as css from "../components/table.module.css";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { exact, gain, rate } from "../format.ts";
import { totalsComparison } from "../loads/overview.ts";
import { allRecordContent, recordContentQuery } from "../loads/rankings.ts";
import {
  comparedAccounts,
  fetchAccountLines,
  fetchCreator,
  fetchCreatorAccounts,
  MAX_LINES,
} from "../loads/records.ts";
import { chartOf, METRIC_NAMES, metricOf, SERIES_METRICS, shortFormat } from "../state/metrics.ts";
import { useTitle } from "../state/title.ts";
import { linkTo, ranksChange, view } from "../state/view.ts";
import { CreatorSettings, PauseCreatorButton } from "./creator/settings.tsx";
import type { PageProps } from "./props.ts";

const COLOURS = [1, 2, 3, 4, 5] as const;

type Ranking = Awaited<ReturnType<typeof fetchCreatorAccounts>>;
type AccountRow = Ranking["data"][number];

/** The picture of the account with the most followers, of those that have one: a creator has none. */
function pictureOf(accounts: Ranking | undefined): string | null {
  const pictured = accounts?.data.filter(({ profile_pic_url }) => copyPath(profile_pic_url)) ?? [];
  return pictured.toSorted((a, b) => b.follower_count - a.follower_count)[0]?.profile_pic_url ?? null;
}

export default function CreatorPage({ id, identity }: PageProps) {
  const current = view.value;
  const canWrite = mayWrite(identity) ?? false;
  const creator = useResource((signal) => fetchCreator(id, signal), [id]);
  const gains = useRecordGains(id, { creator_id: id });
  const accounts = useResource(
    (signal) => fetchCreatorAccounts(id, current, signal),
    [id, JSON.stringify(current.range), metricOf(SERIES_METRICS, current.metric), totalsComparison(current)],
  );
  const record = creator.data?.data;
  useTitle(record?.name);
  if (!record && creator.problem) return <RecordProblem name="Creator" resource={creator} list="/creators" />;
  const reload = () => {
    for (const resource of [creator, accounts, gains.totals, gains.days]) resource.reload();
  };
  return (
    <>
      <div class="page-head">
        {record ? (
          <Picture id={record.id} name={record.name} src={pictureOf(accounts.data)} />
        ) : (
          <span class="picture skeleton" />
        )}
        <div class="grow">
          <h1>
            <span dir="auto">{record?.name ?? "Creator"}</span>
          </h1>
          <p class="small quiet">{record ? <Reach {...record.accounts_summary} /> : "\u00a0"}</p>
          <WindowNote meta={gains.totals.data?.meta} />
        </div>
        <Controls hasPlatform={false} />
      </div>
      {record && !record.is_active && (
        <section class="notice calm" aria-label="Paused">
          <p>
            <b>Paused.</b> None of its accounts is read. Their history stays.
          </p>
          {canWrite && <PauseCreatorButton creator={record} onChanged={reload} />}
        </section>
      )}
      <RecordMetrics {...gains} />
      <AccountLines accounts={accounts} />
      <AccountsCard creatorId={id} accounts={accounts} canWrite={canWrite} onChanged={reload} />
      <div class="columns wide">
        <DailyGains days={gains.days} scope={{ creator_id: id }} hasSelect={false} />
        <FollowersHistory days={gains.days} />
      </div>
      <div class="columns">
        <RankedContent
          title="Posts that gained most"
          query={recordContentQuery(current, { creator_id: id })}
          all={allRecordContent(current, { creator_id: id })}
        />
        {canWrite && (
          <Card title="Settings" resource={creator} height={200}>
            {({ data }) => <CreatorSettings key={id} creator={data} onChanged={reload} />}
          </Card>
        )}
      </div>
    </>
  );
}

/** One line per account: of a stack, only the lowest layer can be read. */
function AccountLines({ accounts }: { accounts: Resource<Ranking> }) {
  const current = view.value;
  const ranking = accounts.data;
  const compared = comparedAccounts(ranking?.data ?? [], current.range);
  const lines = useResource(compared && ((signal) => fetchAccountLines(compared, current, signal)), [
    ranking,
  ]);
  // Of the days that are shown, while others load.
  const { title: perDay, ...look } = chartOf(
    lines.data?.meta.metric ?? metricOf(SERIES_METRICS, current.metric),
  );
  const title = `${perDay}, by account`;
  const total = ranking?.data.length ?? 0;
  if (ranking && total === 0) return null;
  return (
    <Card
      title={title}
      resource={lines}
      height={292}
      actions={<MetricSelect metrics={SERIES_METRICS} />}
      idle={ranking && <RangeTooLong />}
      {...(total > MAX_LINES ? { note: `the ${MAX_LINES} of ${total} accounts that gained most` } : {})}
    >
      {(data) =>
        ranking &&
        compared && (
          <LineChart
            title={title}
            dates={data.meta.dates}
            today={data.meta.dates.findIndex((date) => date > data.meta.complete_through)}
            {...look}
            series={compared.flatMap(({ id, username, platform }, position) =>
              data.data[id]
                ? [
                    {
                      name: lineName(username, platform, ranking),
                      values: data.data[id],
                      colour: COLOURS[position] ?? 1,
                    },
                  ]
                : [],
            )}
          />
        )
      }
    </Card>
  );
}

/** Names the platform where the same name is on both. */
function lineName(username: string, platform: AccountRow["platform"], { data }: Ranking): string {
  const isOnBoth = data.filter((account) => account.username === username).length > 1;
  return isOnBoth ? `@${username} (${PLATFORM_NAMES[platform]})` : `@${username}`;
}

interface AccountsProps {
  creatorId: string;
  accounts: Resource<Ranking>;
  canWrite: boolean;
  onChanged: () => void;
}

function AccountsCard({ creatorId, accounts, canWrite, onChanged }: AccountsProps) {
  const path = (account_id: string) => ({ params: { path: { creator_id: creatorId, account_id } } });
  const link = useAction((signal, id: string) =>
    unwrap(api.PUT("/creators/{creator_id}/accounts/{account_id}", { ...path(id), signal })).then(onChanged),
  );
  const unlink = useAction((signal, id: string) =>
    unwrap(api.DELETE("/creators/{creator_id}/accounts/{account_id}", { ...path(id), signal })).then(
      onChanged,
    ),
  );
  const isRunning = link.isRunning || unlink.isRunning;
  const metric = metricOf(SERIES_METRICS, view.value.metric);
  const chosen: Column<AccountRow> = {
    name: METRIC_NAMES[metric],
    isNumber: true,
    csv: (row) => row.metrics[metric],
    render: (row) => <Count value={row.metrics[metric]} format={shortFormat(metric)} />,
  };
  const change: Column<AccountRow> = {
    name: "Change",
    isNumber: true,
    csv: (row) => row.change_percent,
    render: ({ change_percent, metrics, previous }) => (
      <Change percent={change_percent} current={metrics[metric]} previous={previous[metric]} />
    ),
  };
  const columns: Column<AccountRow>[] = [
    {
      name: "Account",
      isName: true,
      csv: (row) => row.username,
      render: ({ id, username, platform, profile_pic_url }) => (
        <Entity
          id={id}
          href={linkTo(`/accounts/${id}`)}
          name={`@${username}`}
          src={profile_pic_url}
          detail={PLATFORM_NAMES[platform]}
        />
      ),
    },
    ...(metric === "followers" || metric === "new_posts" ? [] : [chosen]),
    ...(ranksChange(view.value, metric) ? [change] : []),
    {
      name: "Rate",
      isNumber: true,
      csv: (row) => row.metrics.engagement_rate,
      render: (row) => (
        <span title={String(row.metrics.engagement_rate ?? "–")}>{rate(row.metrics.engagement_rate)}</span>
      ),
    },
    {
      name: "New posts",
      isNumber: true,
      csv: (row) => row.metrics.new_posts,
      render: (row) => <Count value={row.metrics.new_posts} />,
    },
    {
      name: "Followers",
      isNumber: true,
      csv: (row) => row.follower_count,
      render: (row) => <Count value={row.follower_count} />,
    },
    {
      name: "New followers",
      isNumber: true,
      csv: (row) => row.metrics.followers,
      render: (row) => <Count value={row.metrics.followers} format={gain} />,
    },
  ];
  const unlinkColumn: Column<AccountRow> = {
    name: "Unlink",
    isControl: true,
    render: ({ id, username }) => (
      <button
        type="button"
        class="plain small"
        disabled={isRunning}
        aria-label={`Unlink @${username}`}
        onClick={() => unlink.run(id)}
      >
        Unlink
      </button>
    ),
  };
  const actions = canWrite && (
    <UnlinkedAccountPicker
      label="Link an account"
      placeholder="Link an account…"
      disabled={isRunning}
      onPick={(id) => link.run(id)}
    />
  );
  const menu = <CsvButton title="Accounts of a creator" columns={columns} rows={accounts.data?.data ?? []} />;
  const failed = [link, unlink].find(({ problem }) => problem);
  return (
    <Card title="Accounts" resource={accounts} height={220} actions={actions} menu={menu}>
      {({ data }) => (
        <>
          {failed && <ProblemNotice of={failed} />}
          {data.length === 0 ? (
            <Empty>
              No account is linked. {canWrite ? "Pick one above: type a part of its username." : ""}
            </Empty>
          ) : (
            <div class={css.dense}>
              <Table
                title="Accounts"
                columns={canWrite ? [...columns, unlinkColumn] : columns}
                rows={data}
                rowKey={(row) => row.id}
              />
            </div>
          )}
        </>
      )}
    </Card>
  );
}

function Reach({ total, total_followers }: { total: number; total_followers: number }) {
  return (
    <>
      <Count value={total} format={exact} /> {total === 1 ? "account" : "accounts"} ·{" "}
      <Count value={total_followers} /> {total_followers === 1 ? "follower" : "followers"}
    </>
  );
}
