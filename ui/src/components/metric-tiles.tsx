// The metrics of a window: tiles, of which one chooses what the chart shows, and the series of that chart.

import { useMemo } from "preact/hooks";
import type { paths } from "../api/schema.d.ts";
import { Sparkline } from "../charts/line.tsx";
import type { Series } from "../charts/series.ts";
import { compact } from "../format.ts";
import {
  chartOf,
  METRIC_NAMES,
  type Metric,
  metricOf,
  RECORD_METRICS,
  type RecordMetric,
  shortFormat,
} from "../state/metrics.ts";
import { navigate, view } from "../state/view.ts";
import * as css from "./metric-tiles.module.css";
import { Change, Count } from "./parts.tsx";

type Response<Path extends "/overview" | "/analytics/timeseries"> =
  paths[Path]["get"]["responses"][200]["content"]["application/json"];
export type Timeseries = Response<"/analytics/timeseries">;
type Day = Timeseries["data"][number];
type DayMetrics = Pick<Day, RecordMetric | "observed">;

const TILES = ["views", "engagement", "engagement_rate", "followers", "new_posts"] as const;

function chooseMetric(metric: Metric): void {
  navigate({ metric }, { replace: true });
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
  return (
    <div class={css.tiles}>
      {TILES.map((metric, position) => {
        const value = overview?.data[metric];
        return (
          <button
            key={metric}
            type="button"
            class={css.tile}
            aria-pressed={chosen === metric}
            onClick={() => chooseMetric(metric)}
          >
            <span class="quiet small">{METRIC_NAMES[metric]}</span>
            <b>
              {value ? (
                <Count
                  value={value.current}
                  format={metric === "followers" ? compact : shortFormat(metric)}
                />
              ) : (
                <span class="skeleton text" />
              )}
            </b>
            <span class="small">
              {value && view.value.compare && (
                <Change percent={value.change_percent} previous={value.previous} />
              )}
            </span>
            {sparklines[position]}
          </button>
        );
      })}
    </div>
  );
}

function TileSparkline({ timeseries, metric }: { timeseries: Timeseries | undefined; metric: RecordMetric }) {
  const { title, format, base } = chartOf(metric);
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
  return data.findIndex(({ date }) => date > meta.complete_through);
}

/** A day on which nothing was observed is a gap. Posts have a time of their own. */
function dayValue(day: DayMetrics | null | undefined, metric: RecordMetric): number | null {
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
  if (!data[0]?.previous) return [current];
  const previous = data.map(({ previous }) => dayValue(previous && pick(previous), metric));
  const dates = data.map(({ previous }) => previous?.date ?? "");
  return [
    current,
    {
      name: data[0].platforms ? `${name} before` : "Before",
      colour,
      values: previous,
      dates,
      isPrevious: true,
    },
  ];
}
