// The daily history of one record: gains, or counters at the end of each day.

import type { Resource } from "../../api/resource.ts";
import { LineChart } from "../../charts/line.tsx";
import { MetricSelect } from "../../components/metric-tiles.tsx";
import { Card } from "../../components/parts.tsx";
import { exact } from "../../format.ts";
import { COUNTER_METRICS, COUNTERS, type Counter, METRIC_NAMES, metricOf } from "../../state/metrics.ts";
import { navigate, type View, view } from "../../state/view.ts";
import { spreadGains } from "./gain-steps.ts";

export type Counts = Record<(typeof COUNTERS)[Counter], number | null>;

export interface HistoryDay extends Counts {
  date: string;
  levels?: Counts | null;
  since?: string | null;
  observed: boolean | number;
}

interface Props {
  resource: Resource<{ data: readonly HistoryDay[]; meta: { complete_through: string } }>;
  /** What happened on some days. */
  events?: ReadonlyMap<string, string>;
}

/** Days without an observation are gaps. Which, and whether in all, is in the address. */
export function HistoryCard({ resource, events }: Props) {
  const metric = metricOf(COUNTER_METRICS, view.value.metric);
  const [title, counter] = [METRIC_NAMES[metric], COUNTERS[metric]];
  const { values } = view.value;
  const isCumulative = values === "cumulative";
  const actions = (
    <>
      <MetricSelect metrics={COUNTER_METRICS} />
      <select
        aria-label="Values"
        value={values}
        onChange={(event) => navigate({ values: event.currentTarget.value as View["values"] })}
      >
        <option value="gains">each day</option>
        <option value="cumulative">in all</option>
      </select>
    </>
  );
  return (
    <Card
      title={`${title} ${isCumulative ? "at the end of each day" : "per day"}`}
      resource={resource}
      height={292}
      actions={actions}
    >
      {({ data, meta }) => {
        const value = (day: HistoryDay) =>
          !day.observed ? null : isCumulative ? (day.levels?.[counter] ?? null) : day[counter];
        const spread = isCumulative ? null : spreadGains(data, data.map(value));
        const marks = new Map(
          data.flatMap(({ date }, position) =>
            events?.has(date) ? [[position, events.get(date) ?? ""] as const] : [],
          ),
        );
        return (
          <LineChart
            title={`${title} ${isCumulative ? "at the end of each day" : "gained per day"}`}
            dates={data.map(({ date }) => date)}
            events={marks}
            base={isCumulative ? "least" : "zero"}
            series={[{ name: title, values: data.map(value), colour: 1, ...spread }]}
            today={data.findIndex(({ date }) => date > meta.complete_through)}
            format={exact}
          />
        );
      }}
    </Card>
  );
}
