// What one account or creator gained in the window: metrics with their change, one of them day by day, and followers.

import { useResource } from "../api/resource.ts";
import { LineChart } from "../charts/line.tsx";
import { exact, days as formatDays } from "../format.ts";
import { fetchDays, fetchTotals, granularityOf, type Scope, totalsComparison } from "../loads/overview.ts";
import { chartOf, METRIC_NAMES, metricOf, RECORD_METRICS } from "../state/metrics.ts";
import { view } from "../state/view.ts";
import {
  datesOf,
  dayValue,
  GranularitySelect,
  hasLateGains,
  LATE_GAINS_NOTE,
  MetricSelect,
  MetricTiles,
  seriesOf,
  todayOf,
} from "./metric-tiles.tsx";
import { Card, LEGEND_PLACEHOLDER } from "./parts.tsx";

type Day = Awaited<ReturnType<typeof fetchDays>>["data"][number];

export function useRecordGains(id: string, scope: Scope) {
  const current = view.value;
  const range = JSON.stringify(current.range);
  const days = useResource(
    (signal) => fetchDays(current, scope, false, signal),
    [id, range, current.compare, granularityOf(current)],
    { isLive: true },
  );
  const totals = useResource(
    (signal) => fetchTotals(current, scope, signal),
    [id, range, totalsComparison(current)],
    {
      isLive: true,
    },
  );
  return { totals, days };
}

export function RecordMetrics({ totals, days }: ReturnType<typeof useRecordGains>) {
  return (
    <Card
      title="In this period"
      resource={totals}
      requests={days.requests}
      height={118}
      placeholder={<MetricTiles />}
    >
      {(data) => <MetricTiles overview={data} timeseries={days.data} />}
    </Card>
  );
}

/** Days with new posts, for the chart. */
function postEvents(days: readonly Day[]): ReadonlyMap<number, string> {
  return new Map(
    days.flatMap(({ new_posts }, position) =>
      new_posts > 0 ? [[position, `${new_posts} new ${new_posts === 1 ? "post" : "posts"}`] as const] : [],
    ),
  );
}

export function DailyGains({
  days,
  scope,
  hasSelect = true,
}: Pick<ReturnType<typeof useRecordGains>, "days"> & {
  scope: Readonly<Record<string, string>>;
  hasSelect?: boolean;
}) {
  const metric = metricOf(RECORD_METRICS, view.value.metric);
  const { title, ...look } = chartOf(metric, granularityOf(view.value));
  const rows = days.data?.data ?? [];
  const previous = rows.flatMap(({ previous }) => previous ?? []);
  const note =
    [
      rows.some(({ new_posts }) => new_posts > 0) ? "▼ new posts" : "",
      previous.length > 0
        ? `dashed: ${formatDays(previous[0]?.date ?? "", previous.at(-1)?.date ?? "")}`
        : "",
      hasLateGains(rows) && metric !== "followers" && metric !== "new_posts" ? LATE_GAINS_NOTE : "",
    ]
      .filter(Boolean)
      .join(" · ") || LEGEND_PLACEHOLDER;
  return (
    <Card
      title={title}
      resource={days}
      height={292}
      actions={
        <>
          {hasSelect && <MetricSelect />}
          <GranularitySelect />
        </>
      }
      note={note}
    >
      {(data) => (
        <LineChart
          title={title}
          {...datesOf(data)}
          series={seriesOf(METRIC_NAMES[metric], 1, data.data, metric, (day) => day)}
          today={todayOf(data)}
          events={postEvents(data.data)}
          postsOf={scope}
          {...look}
        />
      )}
    </Card>
  );
}

export function FollowersHistory({ days }: Pick<ReturnType<typeof useRecordGains>, "days">) {
  const { title } = chartOf("followers", granularityOf(view.value));
  return (
    <Card title={title} resource={days} height={292}>
      {(data) => (
        <LineChart
          title={title}
          {...datesOf(data)}
          today={todayOf(data)}
          base="least"
          format={exact}
          series={[
            { name: "Followers", values: data.data.map((day) => dayValue(day, "followers")), colour: 1 },
          ]}
        />
      )}
    </Card>
  );
}
