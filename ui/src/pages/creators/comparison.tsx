// Up to five creators in one chart.

import { api, unwrap } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import { LineChart } from "../../charts/line.tsx";
import { MetricSelect } from "../../components/metric-tiles.tsx";
import { Card, Count, ProblemNotice, RangeTooLong } from "../../components/parts.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { gain } from "../../format.ts";
import { chartOf, METRIC_NAMES, metricOf, SERIES_METRICS } from "../../state/metrics.ts";
import {
  linkTo,
  MAX_SERIES_DAYS,
  rangeDays,
  setFilters,
  type View,
  view,
  windowParameters,
} from "../../state/view.ts";

import * as css from "./comparison.module.css";

export const MAX_COMPARED = 5;
const COLOURS = [1, 2, 3, 4, 5] as const;
const NAME_COLOURS = [css.colour1, css.colour2, css.colour3, css.colour4, css.colour5];

export function comparedIds({ filters }: View): string[] {
  return (filters.get("creators") ?? "").split(",").filter(Boolean).slice(0, MAX_COMPARED);
}

function setCompared(ids: readonly string[]): void {
  setFilters({ creators: ids.join(",") });
}

export function toggleCompared(id: string): void {
  const ids = comparedIds(view.value);
  setCompared(ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id]);
}

async function fetchName(creator_id: string, signal: AbortSignal): Promise<readonly [string, string]> {
  const { data } = await unwrap(
    api.GET("/creators/{creator_id}", { params: { path: { creator_id } }, signal }),
  );
  return [creator_id, data.name];
}

interface Props {
  ids: readonly string[];
  /** Names by id, of the creators that the page lists, once it does. */
  names: ReadonlyMap<string, string> | undefined;
}

export function Comparison({ ids, names }: Props) {
  const metric = metricOf(SERIES_METRICS, view.value.metric);
  const query = {
    ...windowParameters(view.value.range),
    creator_ids: [...ids],
    metric,
    unobserved: "null" as const,
  };
  const isTooLong = rangeDays(view.value.range) > MAX_SERIES_DAYS;
  const series = useResource(
    isTooLong ? null : (signal) => unwrap(api.GET("/creators/timeseries", { params: { query }, signal })),
    [JSON.stringify(query)],
  );
  const unlisted = names ? ids.filter((id) => !names.has(id)) : [];
  const others = useResource(
    async (signal) => new Map(await Promise.all(unlisted.map((id) => fetchName(id, signal)))),
    [unlisted.join()],
  );
  const nameOf = (id: string) => names?.get(id) ?? others.data?.get(id) ?? "…";
  const window = { ...windowParameters(view.value.range), creator_ids: [...ids] };
  const gains = useResource(
    (signal) => unwrap(api.GET("/creators/metrics", { params: { query: window }, signal })),
    [JSON.stringify(window)],
  );
  // Of the days that are shown, while others load.
  const { title, ...look } = chartOf(series.data?.meta.metric ?? metric);
  const actions = (
    <>
      <MetricSelect metrics={SERIES_METRICS} />
      <button type="button" class="plain" onClick={() => setCompared([])}>
        End comparison
      </button>
    </>
  );
  const figures = ids.map((id, position) => ({
    id,
    name: nameOf(id),
    position,
    gains: gains.data?.data[id],
  }));
  return (
    <Card
      title={title}
      resource={series}
      height={292}
      note={`${ids.length} of at most ${MAX_COMPARED} creators`}
      actions={actions}
      requests={gains.requests}
      idle={
        <>
          <RangeTooLong />
          <FiguresTable rows={figures} />
        </>
      }
    >
      {(loaded) => (
        <>
          <LineChart
            title={`${title}, by creator`}
            dates={loaded.meta.dates}
            today={loaded.meta.dates.findIndex((date) => date > loaded.meta.complete_through)}
            {...look}
            series={ids.flatMap((id, position) =>
              loaded.data[id]
                ? [{ name: nameOf(id), values: loaded.data[id], colour: COLOURS[position] ?? 1 }]
                : [],
            )}
          />
          <ProblemNotice of={gains} />
          <FiguresTable rows={figures} />
        </>
      )}
    </Card>
  );
}

interface Figures {
  id: string;
  name: string;
  /** In the comparison. */
  position: number;
  gains: Record<GainName, number> | null | undefined;
}

const GAINS = ["views", "likes", "comments", "shares", "engagement", "followers"] as const;
type GainName = (typeof GAINS)[number];

const FIGURES: readonly Column<Figures>[] = [
  {
    name: "Creator",
    csv: ({ name }) => name,
    render: ({ id, name, position }) => (
      <a class={`${css.figureName} ${NAME_COLOURS[position] ?? ""}`} href={linkTo(`/creators/${id}`)}>
        <span dir="auto">{name}</span>
      </a>
    ),
  },
  ...GAINS.map(
    (metric): Column<Figures> => ({
      name: metric === "followers" ? "New followers" : METRIC_NAMES[metric],
      isNumber: true,
      csv: ({ gains }) => gains?.[metric],
      render: ({ gains }) => <Count value={gains?.[metric]} format={gain} />,
    }),
  ),
];

/** What each gained, side by side. */
function FiguresTable({ rows }: { rows: readonly Figures[] }) {
  return (
    <div class="after">
      <Table title="Figures of the comparison" columns={FIGURES} rows={rows} rowKey={({ id }) => id} />
    </div>
  );
}
