// Overview: what the organization gained, day by day, and what gained most.

import { useMemo } from "preact/hooks";
import { mayWrite } from "../api/identity.ts";

import { type Resource, useResource } from "../api/resource.ts";
import { LineChart } from "../charts/line.tsx";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import {
  datesOf,
  GranularitySelect,
  hasLateGains,
  LATE_GAINS_NOTE,
  MetricSelect,
  MetricTiles,
  seriesOf,
  type Timeseries,
  todayOf,
} from "../components/metric-tiles.tsx";
import { Card, Count, LEGEND_PLACEHOLDER, statusName, WindowNote } from "../components/parts.tsx";
import { Breakouts, RankedAccounts, RankedContent, RankedCreators } from "../components/rankings.tsx";
import { ScopeFilters } from "../components/scope-filters.tsx";
import { days, exact } from "../format.ts";
import {
  fetchDays,
  fetchTotals,
  granularityOf,
  isSplit,
  overviewScope,
  totalsComparison,
} from "../loads/overview.ts";
import { ALL_BREAKOUTS, overviewQueries } from "../loads/rankings.ts";
import { fetchTracking, NOT_UPDATING } from "../loads/tracking.ts";
import { chartOf, metricOf, RECORD_METRICS, type RecordMetric } from "../state/metrics.ts";
import { linkTo, PLATFORMS, setFilters, view } from "../state/view.ts";
import * as css from "./overview.module.css";
import type { PageProps } from "./props.ts";

export default function OverviewPage({ identity }: PageProps) {
  const current = view.value;
  const scope = overviewScope(current);
  const dependencies = [JSON.stringify([current.range, scope])];
  const series = useResource(
    (signal) => fetchDays(current, scope, isSplit(current), signal),
    [...dependencies, current.compare, isSplit(current), granularityOf(current)],
    { isLive: true },
  );
  const overview = useResource(
    (signal) => fetchTotals(current, scope, signal),
    [...dependencies, totalsComparison(current)],
    { isLive: true },
  );
  const metric = metricOf(RECORD_METRICS, current.metric);
  const rankings = overviewQueries(current);
  const totals = overview.data?.data.totals;
  const canWrite = mayWrite(identity) ?? false;
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Overview</h1>
          <WindowNote meta={overview.data?.meta} />
          <TrackingNote
            accounts={identity.data?.usage.accounts}
            filtered={Object.keys(scope).length > 0 ? totals?.accounts : undefined}
            canWrite={canWrite}
          />
        </div>
        <Controls />
      </div>
      {totals && totals.accounts + totals.individual_videos === 0 && Object.keys(scope).length === 0 ? (
        <FirstSteps identity={identity} />
      ) : (
        <>
          <ScopeFilters />
          <Card
            title="Gained in this period"
            resource={overview}
            requests={series.requests}
            height={118}
            placeholder={<MetricTiles />}
          >
            {(data) => <MetricTiles overview={data} timeseries={series.data} />}
          </Card>
          <ChartCard resource={series} metric={metric} />
          <div class="columns wide">
            <RankedContent
              title="Top content"
              query={rankings.content}
              all={rankedBy("/content", rankings.content.metric)}
            />
            <Breakouts title="Breakouts" query={rankings.breakouts} all={linkTo("/content", ALL_BREAKOUTS)} />
            <RankedAccounts
              title="Top accounts"
              query={rankings.accounts}
              all={rankedBy("/accounts", rankings.accounts.metric)}
            />
            {rankings.creators && (
              <RankedCreators
                title="Top creators"
                query={rankings.creators}
                all={rankedBy("/creators", rankings.creators.metric)}
              />
            )}
          </div>
        </>
      )}
    </>
  );
}

/** The page of a whole ranking. */
function rankedBy(path: string, metric: RecordMetric): string {
  return linkTo(path, { sort: `-${metric}` });
}

const addLink = () => linkTo("/accounts", { add: "1" });

/** How many accounts do not update, and where to see why. */
function TrackingNote({
  accounts,
  filtered,
  canWrite,
}: {
  accounts: number | undefined;
  /** How many match the filters of the page, if it has any. */
  filtered: number | undefined;
  canWrite: boolean;
}) {
  const { data } = useResource(fetchTracking, [], { isLive: true });
  const found = NOT_UPDATING.filter((status) => data && data.accounts[status] > 0);
  const others = (["pending", "paused", "paused_by_creator"] as const).filter(
    (status) => data && data.accounts[status] > 0,
  );
  if (!data || !accounts) return <p class={`${css.trackingNote} small`}>{"\u00a0"}</p>;
  return (
    <p class={`${css.trackingNote} quiet small`}>
      <span>
        {filtered !== undefined && (
          <>
            <Count value={filtered} format={exact} /> of{" "}
          </>
        )}
        <Count value={accounts} format={exact} /> {accounts === 1 ? "account" : "accounts"}
      </span>
      {found.length + others.length === 0 && <span>all updating</span>}
      {found.length + others.length > 0 && data.accounts.active > 0 && (
        <span>
          <Count value={data.accounts.active} format={exact} /> updating
        </span>
      )}
      {others.map((status) => (
        <a key={status} class="link" href={linkTo("/accounts", { status }, { isUnfiltered: true })}>
          <Count value={data.accounts[status]} format={exact} /> {statusName(status).toLowerCase()}
        </a>
      ))}
      {found.length > 0 && (
        <a class="link" href={linkTo("/tracking")}>
          {found.map((status, index) => (
            <>
              {index > 0 && ", "}
              <Count value={data.accounts[status]} format={exact} /> {status}
            </>
          ))}
          : see why
        </a>
      )}
      {canWrite && (
        <a class="link" href={addLink()}>
          add more
        </a>
      )}
    </p>
  );
}

function FirstSteps({ identity }: { identity: PageProps["identity"] }) {
  return (
    <section class={`card ${css.firstSteps}`} aria-label="First steps">
      <h2>Nothing is tracked yet</h2>
      <p>
        Add accounts by username or profile link. Their posts appear here within a minute, and what they gain
        is counted from today on.
      </p>
      {mayWrite(identity) && (
        <p>
          <a class="button primary" href={addLink()}>
            Add accounts
          </a>
        </p>
      )}
      {mayWrite(identity) === false && (
        <p>
          This key may only read. Adding accounts needs a key with the scope <code>write</code>.
        </p>
      )}
    </section>
  );
}

function ChartCard({ resource, metric }: { resource: Resource<Timeseries>; metric: RecordMetric }) {
  const { title } = chartOf(metric, granularityOf(view.value));
  const previous = resource.data?.data.flatMap(({ previous }) => previous ?? []) ?? [];
  const actions = (
    <>
      <MetricSelect />
      <GranularitySelect />
      {view.value.platform === null && (
        <label class="check small">
          <input
            type="checkbox"
            checked={isSplit(view.value)}
            onChange={(event) => setFilters({ split: event.currentTarget.checked ? "platform" : null })}
          />{" "}
          by platform
        </label>
      )}
    </>
  );
  const dashed =
    previous.length > 0
      ? `dashed: ${days(previous[0]?.date ?? "", previous.at(-1)?.date ?? "")}`
      : LEGEND_PLACEHOLDER;
  const isLate = hasLateGains(resource.data?.data ?? []) && metric !== "followers" && metric !== "new_posts";
  const note = (
    <>
      {view.value.compare && dashed}
      {isLate && ` · ${LATE_GAINS_NOTE}`}
    </>
  );
  return (
    <Card title={title} note={note} resource={resource} height={292} actions={actions}>
      {(timeseries) => <Chart timeseries={timeseries} metric={metric} />}
    </Card>
  );
}

/** Drawn again for other data only. */
function Chart({ timeseries, metric }: { timeseries: Timeseries; metric: RecordMetric }) {
  return useMemo(() => drawChart(timeseries, metric), [timeseries, metric]);
}

function drawChart(timeseries: Timeseries, metric: RecordMetric) {
  const { data } = timeseries;
  const { title, ...look } = chartOf(metric, granularityOf(view.peek()));
  const series = data[0]?.platforms
    ? PLATFORMS.flatMap((platform, position) =>
        seriesOf(
          PLATFORM_NAMES[platform],
          position === 0 ? 3 : 2,
          data,
          metric,
          (day) => day.platforms?.[platform],
        ),
      )
    : seriesOf("Total", 1, data, metric, (day) => day);
  return (
    <LineChart
      title={title}
      {...datesOf(timeseries)}
      series={series}
      today={todayOf(timeseries)}
      postsOf={{}}
      {...look}
    />
  );
}
