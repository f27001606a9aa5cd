// The metrics of a window: tiles, of which one chooses what the chart shows, and the series of that chart.

import { useMemo } from "preact/hooks";
import type { paths } from "../api/schema.d.ts";
import { Sparkline } from "../charts/line.tsx";
import type { Series } from "../charts/series.ts";
import { GRANULARITIES, type Granularity, granularityOf } from "../loads/overview.ts";
import {
  chartOf,
  METRIC_NAMES,
  type Metric,
  metricOf,
  RECORD_METRICS,
  type RecordMetric,
  shortFormat,
} from "../state/metrics.ts";
import { hasToday, navigate, setFilters, view } from "../state/view.ts";
import * as css from "./metric-tiles.module.css";
import { Change, Count } from "./parts.tsx";

type Response<Path extends "/overview" | "/analytics/timeseries"> =
  paths[Path]["get"]["responses"][200]["content"]["application/json"];
export type Timeseries = Response<"/analytics/timeseries">;
type Day = Timeseries["data"][number];
type DayMetrics = Pick<Day, RecordMetric | "observed">;

const TILES = ["views", "engagement", "engagement_rate", "followers", "new_posts"] as const;
/** An account that is added is no growth: the tile says what accounts gained themselves, and the level below it. */
const TILE_NAMES = { ...METRIC_NAMES, followers: "Followers gained" };

function chooseMetric(metric: Metric): void {
  navigate({ metric });
}

/** Chooses what a chart shows. */
export function MetricSelect({ metrics = RECORD_METRICS }: { metrics?: readonly (Metric & string)[] }) {
  return (
    <select
      aria-label="Metric"
      value={metricOf(metrics, view.value.metric)}
      onChange={(event) => chooseMetric(event.currentTarget.value as Metric)}
    >
      {metrics.map((metric) => (
        <option key={metric} value={metric}>
          {METRIC_NAMES[metric]}
        </option>
      ))}
    </select>
  );
}

const PER: Readonly<Record<Granularity, string>> = { day: "by day", week: "by week", month: "by month" };

/** Chooses what each value of a chart is of. */
export function GranularitySelect() {
  return (
    <select
      aria-label="Granularity"
      value={granularityOf(view.value)}
      onChange={({ currentTarget: { value } }) => setFilters({ granularity: value === "day" ? null : value })}
    >
      {GRANULARITIES.map((granularity) => (
        <option key={granularity} value={granularity}>
          {PER[granularity]}
        </option>
      ))}
    </select>
  );
}

interface TilesProps {
  /** Empty tiles until it is loaded. */
  overview?: Response<"/overview">;
  timeseries?: Timeseries | undefined;
}

export function MetricTiles({ overview, timeseries }: TilesProps) {
  const chosen = metricOf(RECORD_METRICS, view.value.metric);
  const sparklines = useMemo(
    () => TILES.map((metric) => <TileSparkline timeseries={timeseries} metric={metric} />),
    [timeseries],
  );
  // Nothing is known of days on which nothing was observed.
  const isKnown = !timeseries || timeseries.data.some(({ observed }) => observed > 0);
  return (
    <div class={css.tiles}>
      {TILES.map((metric, position) => {
        const value = overview?.data[metric === "followers" ? "followers_gained" : metric];
        return (
          <button
            key={metric}
            type="button"
            class={css.tile}
            aria-pressed={chosen === metric}
            onClick={() => chooseMetric(metric)}
          >
            <span class="quiet small">{TILE_NAMES[metric]}</span>
            <b>
              {value ? (
                <Count
                  value={isKnown || metric === "new_posts" ? value.current : null}
                  format={shortFormat(metric)}
                />
              ) : (
                <span class="skeleton text" />
              )}
            </b>
            <span class={`${css.below} small`}>
              {value && <TileChange {...value} />}
              {overview && metric === "followers" && (
                <span class="quiet">
                  <Count value={overview.data.followers.current} /> in all
                </span>
              )}
            </span>
            {sparklines[position]}
          </button>
        );
      })}
    </div>
  );
}

/** The days of a chart: each value is of one, or of several from `date` to `end_date`. */
export function datesOf({ data }: Timeseries): { dates: string[]; ends?: string[] } {
  const dates = data.map(({ date }) => date);
  return data[0]?.end_date ? { dates, ends: data.map(({ date, end_date }) => end_date ?? date) } : { dates };
}

/** Today is compared with nothing: the days before it are whole. */
function TileChange(value: {
  current: number | null;
  previous: number | null;
  change_percent: number | null;
}) {
  const { compare, range } = view.value;
  if (!compare) return null;
  if (hasToday(range))
    return (
      <span class="quiet" title="Today is not over: whole days are compared only">
        so far
      </span>
    );
  return <Change percent={value.change_percent} current={value.current} previous={value.previous} />;
}

function TileSparkline({ timeseries, metric }: { timeseries: Timeseries | undefined; metric: RecordMetric }) {
  const { title, format, base } = chartOf(metric, granularityOf(view.peek()));
  const values = (timeseries?.data ?? []).map((day) => dayValue(day, metric));
  return (
    <Sparkline
      values={values}
      label={title}
      today={timeseries ? todayOf(timeseries) : -1}
      base={base}
      format={format}
    />
  );
}

export function todayOf({ data, meta }: Timeseries): number {
  return data.findIndex(({ date, end_date }) => (end_date ?? date) > meta.complete_through);
}

/** Whether a day holds what was gained since an observation before the day before it. */
export function hasLateGains(days: readonly Day[]): boolean {
  return days.some(({ observed }, position) => observed > 0 && days[position - 1]?.observed === 0);
}

export const LATE_GAINS_NOTE = "a day after a gap holds what was gained since";

/** A day on which nothing was observed is a gap. Posts have a time of their own. */
export function dayValue(day: DayMetrics | null | undefined, metric: RecordMetric): number | null {
  return day && (day.observed > 0 || metric === "new_posts") ? day[metric] : null;
}

/** The values of a metric and, where there are any, those of the previous period. */
export function seriesOf(
  name: string,
  colour: Series["colour"],
  data: readonly Day[],
  metric: RecordMetric,
  pick: (day: Day | NonNullable<Day["previous"]>) => DayMetrics | undefined,
): Series[] {
  const current: Series = { name, colour, values: data.map((day) => dayValue(pick(day), metric)) };
  if (!data.some(({ previous }) => previous)) return [current];
  const previous = data.map(({ previous }) => dayValue(previous && pick(previous), metric));
  const dates = data.map(({ previous }) => previous?.date ?? "");
  return [
    current,
    {
      name: data[0]?.platforms ? `${name} before` : "Before",
      colour,
      values: previous,
      dates,
      isPrevious: true,
    },
  ];
}
