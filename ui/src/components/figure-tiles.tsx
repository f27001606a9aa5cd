// The figures of a window: tiles, of which one chooses what the chart shows, and the series of that chart.

import { useMemo } from "preact/hooks";
import type { paths } from "../api/schema.d.ts";
import { Sparkline } from "../charts/line.tsx";
import type { Series } from "../charts/series.ts";
import { compact } from "../format.ts";
import { setFilters, view } from "../state/view.ts";
import { chartOf, FIGURE_NAMES, FIGURES, type Figure, figureOf, shortFormat } from "./figures.ts";
import { Change, Count } from "./parts.tsx";

type Response<Path extends "/overview" | "/analytics/timeseries"> =
  paths[Path]["get"]["responses"][200]["content"]["application/json"];
export type Timeseries = Response<"/analytics/timeseries">;
type Day = Timeseries["data"][number];
type DayFigures = Pick<Day, Figure | "observed">;

const TILES = ["views", "engagement", "engagement_rate", "followers", "new_posts"] as const;

/** Chooses what a chart shows. */
export function FigureSelect({ figures = FIGURES }: { figures?: readonly Figure[] }) {
  const figure = figureOf(view.value);
  return (
    <select
      aria-label="Figure"
      value={figure}
      onChange={(event) =>
        setFilters({ figure: event.currentTarget.value === "views" ? null : event.currentTarget.value })
      }
    >
      {figures.map((figure) => (
        <option key={figure} value={figure}>
          {FIGURE_NAMES[figure]}
        </option>
      ))}
    </select>
  );
}

interface FiguresProps {
  overview: Response<"/overview"> | null;
  timeseries: Timeseries | null;
  /** The one that the chart shows. */
  figure: Figure;
}

/** Empty tiles until the overview is loaded. */
export function Figures({ overview, timeseries, figure }: FiguresProps) {
  const sparklines = useMemo(
    () => TILES.map((name) => <TileSparkline timeseries={timeseries} figure={name} />),
    [timeseries],
  );
  return (
    <div class="figures">
      {TILES.map((name, position) => {
        const value = overview?.data[name];
        return (
          <button
            key={name}
            type="button"
            class="figure"
            aria-pressed={figure === name}
            onClick={() => setFilters({ figure: name === "views" ? null : name })}
          >
            <span class="quiet small">{FIGURE_NAMES[name]}</span>
            <b>
              {value ? (
                <Count value={value.current} format={name === "followers" ? compact : shortFormat(name)} />
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

function TileSparkline({ timeseries, figure }: Pick<FiguresProps, "timeseries" | "figure">) {
  const { title, format, base } = chartOf(figure);
  const values = (timeseries?.data ?? []).map((day) => dayValue(day, figure));
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
function dayValue(day: DayFigures | null | undefined, figure: Figure): number | null {
  return day && (day.observed > 0 || figure === "new_posts") ? day[figure] : null;
}

/** The values of a figure and, where there are any, those of the previous period. */
export function seriesOf(
  name: string,
  colour: Series["colour"],
  data: readonly Day[],
  figure: Figure,
  pick: (day: Day | NonNullable<Day["previous"]>) => DayFigures | undefined,
): Series[] {
  const current: Series = { name, colour, values: data.map((day) => dayValue(pick(day), figure)) };
  if (!data[0]?.previous) return [current];
  const previous = data.map(({ previous }) => dayValue(previous && pick(previous), figure));
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
