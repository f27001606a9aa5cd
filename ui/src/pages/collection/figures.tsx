// What the posts of a collection brought: in all, in the window, and day by day.

import { type Resource, useResource } from "../../api/resource.ts";
import { LineChart, Sparkline } from "../../charts/line.tsx";
import type { Series } from "../../charts/series.ts";
import { markChanges } from "../../components/marks.tsx";
import * as tiles from "../../components/metric-tiles.module.css";
import { MetricSelect } from "../../components/metric-tiles.tsx";
import { Card, Change, Count, LEGEND_PLACEHOLDER } from "../../components/parts.tsx";
import { compact, days as formatDays } from "../../format.ts";
import { fetchReportDays, fetchReportTotals, type ReportSource } from "../../loads/collections.ts";
import { totalsComparison } from "../../loads/overview.ts";
import {
  CONTENT_METRICS,
  chartOf,
  METRIC_NAMES,
  type Metric,
  metricOf,
  shortFormat,
} from "../../state/metrics.ts";
import { navigate, showsChange, view } from "../../state/view.ts";
import * as css from "../collection.module.css";

type Totals = Awaited<ReturnType<typeof fetchReportTotals>>;
type Days = Awaited<ReturnType<typeof fetchReportDays>>;

const METRICS = [...CONTENT_METRICS, "engagement_rate", "new_posts"] as const satisfies Metric[];
const TILES = ["views", "engagement", "engagement_rate", "likes", "comments", "new_posts"] as const;
const IN_ALL = [
  ["Posts", "videos"],
  ["Accounts", "accounts"],
  ["Creators", "creators"],
  ["Views", "views"],
  ["Likes", "likes"],
  ["Comments", "comments"],
  ["Shares", "shares"],
  ["Saves", "saves"],
] as const;

/** The latest counters of the posts that are in the collection now. */
function InAll({ totals }: { totals: Resource<Totals> }) {
  return (
    <Card title="In all" note="since the posts were posted" resource={totals} height={47}>
      {({ data }) => (
        <dl class={css.inAll}>
          {IN_ALL.map(([title, name]) => (
            <div key={name}>
              <dt class="quiet small">{title}</dt>
              <dd>
                <Count value={data.totals[name]} />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Card>
  );
}

function InPeriod({ totals, days }: { totals: Resource<Totals>; days: Resource<Days> }) {
  return (
    <Card
      title="In this period"
      resource={totals}
      requests={days.requests}
      height={118}
      placeholder={<Tiles days={days.data} />}
    >
      {(data) => <Tiles totals={data} days={days.data} />}
    </Card>
  );
}

/** Empty until it is loaded. */
function Tiles({ totals, days }: { totals?: Totals; days: Days | undefined }) {
  const chosen = metricOf(METRICS, view.value.metric);
  return (
    <div class={tiles.tiles}>
      {TILES.map((metric) => {
        const value = totals?.data[metric];
        const { title, format } = chartOf(metric);
        return (
          <button
            key={metric}
            type="button"
            class={tiles.tile}
            aria-pressed={chosen === metric}
            onClick={() => navigate({ metric }, { replace: true })}
          >
            <span class="quiet small">{METRIC_NAMES[metric]}</span>
            <b>
              {value ? (
                <Count
                  value={value.current}
                  format={metric === "new_posts" ? compact : shortFormat(metric)}
                />
              ) : (
                <span class="skeleton text" />
              )}
            </b>
            <span class="small">
              {value && showsChange(view.value) && (
                <Change percent={value.change_percent} current={value.current} previous={value.previous} />
              )}
            </span>
            <Sparkline
              values={days?.data.map((day) => day[metric]) ?? []}
              label={title}
              today={days ? todayOf(days) : -1}
              format={format}
            />
          </button>
        );
      })}
    </div>
  );
}

function todayOf({ data, meta }: Days): number {
  return data.findIndex(({ date }) => date > meta.complete_through);
}

function seriesOf({ data }: Days, metric: (typeof METRICS)[number]): Series[] {
  const current: Series = { name: METRIC_NAMES[metric], colour: 1, values: data.map((day) => day[metric]) };
  if (!data.some(({ previous }) => previous)) return [current];
  return [
    current,
    {
      name: "Before",
      colour: 1,
      isPrevious: true,
      values: data.map(({ previous }) => previous?.[metric] ?? null),
      dates: data.map(({ previous }) => previous?.date ?? ""),
    },
  ];
}

function DayByDay({ days }: { days: Resource<Days> }) {
  const metric = metricOf(METRICS, view.value.metric);
  const { title, ...look } = chartOf(metric);
  const previous = days.data?.data.flatMap(({ previous }) => previous ?? []) ?? [];
  const dashed =
    previous.length > 0
      ? `dashed: ${formatDays(previous[0]?.date ?? "", previous.at(-1)?.date ?? "")}`
      : LEGEND_PLACEHOLDER;
  return (
    <Card
      title={title}
      note={view.value.compare ? dashed : undefined}
      resource={days}
      height={292}
      actions={<MetricSelect metrics={METRICS} />}
    >
      {(data) => (
        <LineChart
          title={title}
          dates={data.data.map(({ date }) => date)}
          series={seriesOf(data, metric)}
          today={todayOf(data)}
          {...look}
        />
      )}
    </Card>
  );
}

interface Figures {
  totals: Resource<Totals>;
  days: Resource<Days>;
}

/** Loads those that are shown. */
export function useFigures(
  source: ReportSource,
  { overview = true, timeseries = true }: { overview?: boolean; timeseries?: boolean } = {},
): Figures {
  const current = view.value;
  const dependencies = [JSON.stringify([source, current.range]), current.platform, markChanges.value];
  return {
    totals: useResource(overview ? (signal) => fetchReportTotals(source, current, signal) : null, [
      ...dependencies,
      totalsComparison(current),
    ]),
    days: useResource(timeseries ? (signal) => fetchReportDays(source, current, signal) : null, [
      ...dependencies,
      current.compare,
    ]),
  };
}

export function FigureCards({ totals, days }: Figures) {
  return (
    <>
      {totals.status !== "idle" && <InAll totals={totals} />}
      {totals.status !== "idle" && <InPeriod totals={totals} days={days} />}
      {days.status !== "idle" && <DayByDay days={days} />}
    </>
  );
}
