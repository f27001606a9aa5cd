// Up to five creators, accounts or posts in one chart, with their figures side by side.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { LineChart } from "../charts/line.tsx";
import type { ComparisonProps } from "../components/compared.tsx";
import { MetricSelect } from "../components/metric-tiles.tsx";
import { Card, Count, ProblemNotice, RangeTooLong } from "../components/parts.tsx";
import { type Column, Table } from "../components/table.tsx";
import { gain } from "../format.ts";
import { fetchAccount, fetchCreator, fetchVideo } from "../loads/records.ts";
import { MAX_COMPARED, setCompared } from "../state/compared.ts";
import {
  CONTENT_METRICS,
  chartOf,
  METRIC_NAMES,
  type Metric,
  metricOf,
  SERIES_METRICS,
} from "../state/metrics.ts";
import { linkTo, MAX_SERIES_DAYS, rangeDays, view, windowParameters } from "../state/view.ts";
import * as css from "./comparison.module.css";

const COLOURS = [1, 2, 3, 4, 5] as const;
const NAME_COLOURS = [css.colour1, css.colour2, css.colour3, css.colour4, css.colour5];

type Window = ReturnType<typeof windowParameters>;
type SeriesMetric = (typeof SERIES_METRICS)[number];
type GainName = "views" | "likes" | "comments" | "shares" | "engagement" | "followers";
type Gains = Partial<Record<GainName, number>>;

interface Days {
  data: Record<string, (number | null)[]>;
  meta: { dates: string[]; complete_through: string; metric: Metric };
}

/** What there is of each kind of record. */
interface Kind {
  one: string;
  path: string;
  metrics: readonly SeriesMetric[];
  gains: readonly GainName[];
  fetchName: (id: string, signal: AbortSignal) => Promise<string>;
  fetchDays: (ids: string[], metric: SeriesMetric, window: Window, signal: AbortSignal) => Promise<Days>;
  fetchGains: (
    ids: string[],
    window: Window,
    signal: AbortSignal,
  ) => Promise<{ data: Record<string, Gains | null> }>;
}

const POST_GAINS = ["views", "likes", "comments", "shares", "engagement"] as const;
const RECORD_GAINS = [...POST_GAINS, "followers"] as const;
const GAPS = { unobserved: "null" } as const;

const KINDS: Readonly<Record<ComparisonProps["kind"], Kind>> = {
  creators: {
    one: "creator",
    path: "/creators",
    metrics: SERIES_METRICS,
    gains: RECORD_GAINS,
    fetchName: async (id, signal) => (await fetchCreator(id, signal)).data.name,
    fetchDays: (creator_ids, metric, window, signal) => {
      const query = { ...window, creator_ids, metric, ...GAPS };
      return unwrap(api.GET("/creators/timeseries", { params: { query }, signal }));
    },
    fetchGains: (creator_ids, window, signal) =>
      unwrap(api.GET("/creators/metrics", { params: { query: { ...window, creator_ids } }, signal })),
  },
  accounts: {
    one: "account",
    path: "/accounts",
    metrics: SERIES_METRICS,
    gains: RECORD_GAINS,
    fetchName: async (id, signal) => `@${(await fetchAccount(id, signal)).data.username}`,
    fetchDays: (account_ids, metric, window, signal) => {
      const query = { ...window, account_ids, metric, ...GAPS };
      return unwrap(api.GET("/accounts/timeseries", { params: { query }, signal }));
    },
    fetchGains: (account_ids, window, signal) =>
      unwrap(api.GET("/accounts/metrics", { params: { query: { ...window, account_ids } }, signal })),
  },
  posts: {
    one: "post",
    path: "/content",
    metrics: CONTENT_METRICS,
    gains: POST_GAINS,
    fetchName: async (id, signal) => (await fetchVideo(id, signal)).description || "Post without a caption",
    fetchDays: (ids, metric, window, signal) => {
      const query = { ...window, ids, metric: metricOf(CONTENT_METRICS, metric), ...GAPS };
      return unwrap(api.GET("/content/timeseries", { params: { query }, signal }));
    },
    fetchGains: (video_ids, window, signal) =>
      unwrap(api.GET("/videos/metrics", { params: { query: { ...window, video_ids } }, signal })),
  },
};

export default function Comparison({ kind: name, ids, names }: ComparisonProps) {
  const kind = KINDS[name];
  const metric = metricOf(kind.metrics, view.value.metric);
  const window = windowParameters(view.value.range);
  const shown = [name, ids.join(), JSON.stringify(window)];
  const isTooLong = rangeDays(view.value.range) > MAX_SERIES_DAYS;
  const series = useResource(
    isTooLong ? null : (signal) => kind.fetchDays([...ids], metric, window, signal),
    [...shown, metric],
  );
  const unlisted = names ? ids.filter((id) => !names.has(id)) : [];
  const others = useResource(
    async (signal) =>
      new Map(await Promise.all(unlisted.map(async (id) => [id, await kind.fetchName(id, signal)] as const))),
    [unlisted.join()],
  );
  const nameOf = (id: string) => names?.get(id) ?? others.data?.get(id) ?? "…";
  const gains = useResource((signal) => kind.fetchGains([...ids], window, signal), shown);
  // Of the days that are shown, while others load.
  const { title, ...look } = chartOf(series.data?.meta.metric ?? metric);
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
      note={`${ids.length} of at most ${MAX_COMPARED} ${kind.one}s`}
      actions={
        <>
          <MetricSelect metrics={kind.metrics} />
          <button type="button" class="plain" onClick={() => setCompared(name, [])}>
            End comparison
          </button>
        </>
      }
      requests={gains.requests}
      idle={
        <>
          <RangeTooLong />
          <FiguresTable kind={kind} rows={figures} />
        </>
      }
    >
      {(loaded) => (
        <>
          <LineChart
            title={`${title}, by ${kind.one}`}
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
          <FiguresTable kind={kind} rows={figures} />
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
  gains: Gains | null | undefined;
}

function columnsOf({ one, path, gains }: Kind): Column<Figures>[] {
  return [
    {
      name: `${one.charAt(0).toUpperCase()}${one.slice(1)}`,
      csv: ({ name }) => name,
      render: ({ id, name, position }) => (
        <a
          class={`${css.figureName} ${NAME_COLOURS[position] ?? ""}`}
          title={name}
          href={linkTo(`${path}/${id}`)}
        >
          <span dir="auto">{name}</span>
        </a>
      ),
    },
    ...gains.map(
      (metric): Column<Figures> => ({
        name: metric === "followers" ? "New followers" : METRIC_NAMES[metric],
        isNumber: true,
        csv: ({ gains }) => gains?.[metric],
        render: ({ gains }) => <Count value={gains?.[metric]} format={gain} />,
      }),
    ),
  ];
}

/** What each gained, side by side. */
function FiguresTable({ kind, rows }: { kind: Kind; rows: readonly Figures[] }) {
  return (
    <div class="after">
      <Table
        title="Figures of the comparison"
        columns={columnsOf(kind)}
        rows={rows}
        rowKey={({ id }) => id}
      />
    </div>
  );
}
