// Overview: what the organization gained, day by day, and what gained most.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { LineChart, Sparkline } from "../charts/line.tsx";
import type { Series } from "../charts/series.ts";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { RankedAccounts, RankedContent, RankedCreators } from "../components/rankings.tsx";
import { Change, Card, Count, Empty } from "../components/parts.tsx";
import { days, exact, gain, rate, time } from "../format.ts";
import { PLATFORMS, navigate, view, windowParameters, type Metric, type View } from "../state/view.ts";

function shared({ range, platform }: View) {
  return { ...windowParameters(range), ...(platform ? { platform } : {}) };
}

async function fetchOverview(view: View, signal: AbortSignal) {
  return unwrap(api.GET("/overview", { params: { query: shared(view) }, signal }));
}

async function fetchSeries(view: View, signal: AbortSignal) {
  const query = { ...shared(view), ...(view.compare ? { compare: "previous" as const } : {}), ...(view.platform ? {} : { group_by: "platform" as const }) };
  return unwrap(api.GET("/analytics/timeseries", { params: { query }, signal }));
}

type Overview = Awaited<ReturnType<typeof fetchOverview>>;
type Timeseries = Awaited<ReturnType<typeof fetchSeries>>;
type Day = Timeseries["data"][number];
type FigureName = "views" | "engagement" | "engagement_rate" | "followers" | "new_posts";

const FIGURES: readonly { name: FigureName; title: string; metric: Metric | null }[] = [
  { name: "views", title: "Views", metric: "views" },
  { name: "engagement", title: "Engagement", metric: "engagement" },
  { name: "engagement_rate", title: "Engagement rate", metric: null },
  { name: "followers", title: "Followers", metric: null },
  { name: "new_posts", title: "New posts", metric: null },
];

export function OverviewPage() {
  const current = view.value;
  const dependencies = [JSON.stringify([current.range, current.platform])];
  const overview = useResource((signal) => fetchOverview(current, signal), dependencies);
  const series = useResource((signal) => fetchSeries(current, signal), [...dependencies, current.compare]);
  const window = shared(current);
  const meta = overview.data?.meta;
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Overview</h1>
          <p class="quiet small">{meta ? `${days(meta.start_date, meta.end_date)} · days in UTC · data as of ${time(meta.data_as_of)}` : "\u00a0"}</p>
        </div>
        <Controls />
      </div>
      {overview.data?.data.totals.accounts === 0 && <FirstSteps />}
      <Card title="Gained in this period" resource={overview} height={96}>
        {(data) => <Figures overview={data} days={series.data?.data ?? []} />}
      </Card>
      <Card title={`${current.metric[0]?.toUpperCase()}${current.metric.slice(1)} per day`} resource={series} height={300}>
        {(data) => <Chart timeseries={data} metric={current.metric} />}
      </Card>
      <div class="columns">
        <RankedContent title="Top content" query={{ ...window, metric: current.metric, limit: 6 }} />
        <RankedAccounts title="Top accounts" query={{ ...window, metric: current.metric, limit: 8 }} />
        <RankedCreators title="Top creators" query={{ ...window, metric: current.metric, limit: 8 }} />
      </div>
    </>
  );
}

function FirstSteps() {
  return (
    <Empty>
      No accounts are tracked yet. <a href="/accounts"><b>Add the first ones</b></a>: paste usernames or profile links, and their posts appear within a minute.
    </Empty>
  );
}

function Figures({ overview: { data }, days }: { overview: Overview; days: readonly Day[] }) {
  return (
    <div class="figures">
      {FIGURES.map(({ name, title, metric }) => {
        const { current, change_percent } = data[name];
        const format = name === "engagement_rate" ? rate : name === "followers" ? undefined : gain;
        const content = (
          <>
            <span class="quiet small">{title}</span>
            <b><Count value={current} {...(format ? { format } : {})} /></b>
            <Change percent={change_percent} />
            <Sparkline values={days.map((day) => day[name])} label={`${title} per day`} />
          </>
        );
        return metric
          ? <button key={name} type="button" class="figure" aria-pressed={view.value.metric === metric} onClick={() => navigate({ metric }, { replace: true })}>{content}</button>
          : <div key={name} class="figure">{content}</div>;
      })}
    </div>
  );
}

/** A day on which nothing was observed is a gap. */
function valueOf(day: Pick<Day, Metric | "observed"> | undefined, metric: Metric): number | null {
  return day && day.observed > 0 ? day[metric] : null;
}

function Chart({ timeseries: { data, meta }, metric }: { timeseries: Timeseries; metric: Metric }) {
  const series: Series[] = [{ name: "Total", values: data.map((day) => valueOf(day, metric)), colour: 1 }];
  if (data[0]?.platforms) {
    PLATFORMS.forEach((platform, position) => {
      series.push({ name: PLATFORM_NAMES[platform], values: data.map(({ platforms }) => valueOf(platforms?.[platform], metric)), colour: position === 0 ? 3 : 2 });
    });
  }
  if (data[0]?.previous) {
    series.push({ name: "Previous", values: data.map(({ previous }) => valueOf(previous ?? undefined, metric)), colour: 1, isPrevious: true });
  }
  const today = data.findIndex(({ date }) => date > meta.complete_through);
  return <LineChart title={`${metric} per day`} dates={data.map(({ date }) => date)} series={series} today={today} format={exact} />;
}
