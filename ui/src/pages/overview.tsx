// Overview: what the organization gained, day by day, and what gained most.

import { api, unwrap } from "../api/client.ts";
import { useResource, type Resource } from "../api/resource.ts";
import { LineChart } from "../charts/line.tsx";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { FigureSelect, Figures, figureOf, seriesOf, todayOf, type Timeseries } from "../components/figure-tiles.tsx";
import { chartOf, type Figure } from "../components/figures.ts";
import type { PageProps } from "../components/frame.tsx";
import { Breakouts, RankedAccounts, RankedContent, RankedCreators } from "../components/rankings.tsx";
import { Card, Count, WindowNote } from "../components/parts.tsx";
import { days, exact } from "../format.ts";
import { METRICS, PLATFORMS, linkTo, setFilters, view, windowParameters, type View } from "../state/view.ts";

function shared({ range, platform }: View) {
  return { ...windowParameters(range), ...(platform ? { platform } : {}) };
}

function isSplit({ platform, filters }: View): boolean {
  return platform === null && filters.get("split") === "platform";
}

async function fetchOverview(view: View, signal: AbortSignal) {
  return unwrap(api.GET("/overview", { params: { query: shared(view) }, signal }));
}

async function fetchSeries(view: View, signal: AbortSignal) {
  const query = {
    ...shared(view),
    ...(view.compare ? { compare: "previous" as const } : {}),
    ...(isSplit(view) ? { group_by: "platform" as const } : {}),
  };
  return unwrap(api.GET("/analytics/timeseries", { params: { query }, signal }));
}

export function OverviewPage({ identity }: PageProps) {
  const current = view.value;
  const dependencies = [JSON.stringify(shared(current))];
  const overview = useResource((signal) => fetchOverview(current, signal), dependencies);
  const series = useResource((signal) => fetchSeries(current, signal), [...dependencies, current.compare, isSplit(current)]);
  const window = shared(current);
  const figure = figureOf(current);
  const metric = METRICS.find((name) => name === figure) ?? "views";
  const totals = overview.data?.data.totals;
  const canWrite = identity?.scopes.includes("write") ?? false;
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Overview</h1>
          <WindowNote meta={overview.data?.meta} />
          <TrackingNote accounts={identity?.usage.accounts} canWrite={canWrite} />
        </div>
        <Controls />
      </div>
      {totals && totals.accounts + totals.individual_videos === 0 && !current.platform ? <FirstSteps identity={identity} /> : (
        <>
          <Card title="Gained in this period" resource={overview} requests={series.requests} height={118} placeholder={<Figures overview={null} timeseries={null} figure={figure} />}>
            {(data) => <Figures overview={data} timeseries={series.data} figure={figure} />}
          </Card>
          <ChartCard resource={series} figure={figure} />
          <div class="columns wide">
            <RankedContent title="Top content" query={{ ...window, metric, limit: 7 }} />
            <Breakouts title="Breakouts" query={{ ...(current.platform ? { platform: current.platform } : {}), limit: 7 }} />
            <RankedAccounts title="Top accounts" query={{ ...window, metric: figure, limit: 7 }} />
            <RankedCreators title="Top creators" query={{ ...window, metric: figure, limit: 7 }} />
          </div>
        </>
      )}
    </>
  );
}

const ADD_ACCOUNTS = "/accounts?add=true";
const PROBLEMS = ["failing", "unavailable", "unsupported"] as const;

/** How many accounts do not update, and where to see why. */
function TrackingNote({ accounts, canWrite }: { accounts: number | undefined; canWrite: boolean }) {
  const { data } = useResource((signal) => unwrap(api.GET("/tracking", { signal })), []);
  const found = PROBLEMS.filter((status) => data && data.data.accounts[status] > 0);
  if (!data || !accounts) return <p class="tracking-note small">{"\u00a0"}</p>;
  return (
    <p class="tracking-note quiet small">
      <span><Count value={accounts} format={exact} /> accounts</span>
      {found.length === 0 && <span>all updating</span>}
      {found.length > 0 && (
        <a class="link" href={linkTo("/tracking")}>
          {found.map((status, index) => <>{index > 0 && ", "}<Count value={data.data.accounts[status]} format={exact} /> {status}</>)}: see why
        </a>
      )}
      {canWrite && <a class="link" href={ADD_ACCOUNTS}>add more</a>}
    </p>
  );
}

function FirstSteps({ identity }: { identity: PageProps["identity"] }) {
  return (
    <section class="card first-steps" aria-label="First steps">
      <h2>Nothing is tracked yet</h2>
      <p>Add accounts by username or profile link. Their posts appear here within a minute, and what they gain is counted from today on.</p>
      {identity?.scopes.includes("write") && <p><a class="button primary" href={ADD_ACCOUNTS}>Add accounts</a></p>}
      {identity?.scopes.includes("write") === false && <p>This key may only read. Adding accounts needs a key with the scope <code>write</code>.</p>}
    </section>
  );
}

function ChartCard({ resource, figure }: { resource: Resource<Timeseries>; figure: Figure }) {
  const { title } = chartOf(figure);
  const previous = resource.data?.data.flatMap(({ previous }) => previous ?? []) ?? [];
  const actions = (
    <>
      <FigureSelect />
      {view.value.platform === null && (
        <label class="check small">
          <input type="checkbox" checked={isSplit(view.value)} onChange={(event) => setFilters({ split: event.currentTarget.checked ? "platform" : null })} /> by platform
        </label>
      )}
    </>
  );
  const note = previous.length > 0 && view.value.compare ? `dashed: ${days(previous[0]?.date ?? "", previous.at(-1)?.date ?? "")}` : undefined;
  return (
    <Card title={title} note={note} resource={resource} height={292} actions={actions}>
      {(timeseries) => <Chart timeseries={timeseries} figure={figure} />}
    </Card>
  );
}

function Chart({ timeseries, figure }: { timeseries: Timeseries; figure: Figure }) {
  const { data } = timeseries;
  const { title, ...look } = chartOf(figure);
  const series = data[0]?.platforms
    ? PLATFORMS.flatMap((platform, position) => seriesOf(PLATFORM_NAMES[platform], position === 0 ? 3 : 2, data, figure, (day) => day.platforms?.[platform]))
    : seriesOf("Total", 1, data, figure, (day) => day);
  return <LineChart title={title} dates={data.map(({ date }) => date)} series={series} today={todayOf(timeseries)} {...look} />;
}
