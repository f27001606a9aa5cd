// A line chart over days: the current values, those of the previous period dashed, today dotted, and gaps where nothing is known.

import { useRef, useState } from "preact/hooks";

import { day, days, exact } from "../format.ts";
import { goTo, navigate } from "../state/view.ts";
import * as css from "./chart.module.css";
import { Crosshair, Cursor, describe, type Selection, Tooltip } from "./cursor.tsx";
import { fitName, placeLabels } from "./labels.ts";
import { bandPath, linearScale } from "./paths.ts";
import { colourClass, drawnOf, type Scale, type Series, type Values } from "./series.ts";
import { useWidth } from "./size.ts";
import { strokes } from "./strokes.ts";
import { type Base, dayTicks, tickTexts, valueTicks } from "./ticks.ts";
import { ChartTable } from "./twin.tsx";

interface Props {
  /** Says what the chart shows, for assistive technology. */
  title: string;
  dates: readonly string[];
  /** The last days of the values, if each is of several days from `dates` on. */
  ends?: readonly string[];
  series: readonly Series[];
  /** Position of the day that is not over; -1 without. */
  today: number;
  /** Exact values as text. */
  format?: (value: number | null) => string;
  base?: Base;
  isRate?: boolean;
  /** What happened on some days, by position: shown below the line and with the day's values. */
  events?: ReadonlyMap<number, string>;
  /** Whose posts of a day are shown when it is clicked, as filters of the content; without, none. */
  postsOf?: Readonly<Record<string, string>>;
}

export const HEIGHT = 260;
const LABEL_GAP = 15;
export const MARGIN = { top: 12, bottom: 26, left: 50 };

/** Lines with a name beside them. Several previous ones go without: they have the colours of the current ones. */
function labelled(series: readonly Series[]): Series[] {
  const hasSeveral = series.filter(({ isPrevious }) => isPrevious).length > 1;
  return series.filter(
    (one) => !(one.isPrevious && hasSeveral) && drawnOf(one).some((value) => value !== null),
  );
}

/** Room for the names at the ends of the lines. */
function rightMargin(series: readonly Series[], width: number): number {
  const longest = Math.max(0, ...labelled(series).map(({ name }) => [...name].length));
  return Math.min(longest * 6.4 + 16, width * (width < 480 ? 0.3 : 0.24));
}

export function LineChart({
  title,
  dates,
  ends = dates,
  series,
  today,
  format = exact,
  base = "zero",
  isRate = false,
  events,
  postsOf,
}: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth();
  const [position, setPosition] = useState<number | null>(null);
  const [anchor, setAnchor] = useState<number | null>(null);
  if (width === 0) return null;
  const right = width - rightMargin(series, width);
  const ticks = valueTicks(
    series.flatMap((one) => drawnOf(one)),
    4,
    base,
  );
  const last = dates.length - 1;
  const x = linearScale(last > 0 ? [0, last] : [-1, 1], [MARGIN.left, right]);
  const y = linearScale([ticks[0] ?? 0, ticks.at(-1) ?? 1], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const hasArea = base === "zero" && series.filter(({ isPrevious }) => !isPrevious).length === 1;
  const nameOf = (at: number) => days(dates[at] ?? "", ends[at] ?? "");
  const shown = position === null ? null : Math.min(position, last);
  const select = ([from, to]: Selection) => {
    const [start, end] = [dates[from], ends[to]];
    if (start && end) navigate({ range: { period: "custom", start, end, includeToday: false } });
  };
  const showPosts = (at: number) => {
    const date = dates[at];
    const isUnfiltered = Object.keys(postsOf ?? {}).length > 0;
    const day = { posted_after: date ?? "", posted_before: ends[at] ?? "", sort: "-view_count" };
    if (date) goTo("/content", { ...postsOf, ...day }, { isUnfiltered });
  };
  return (
    <figure class={css.chart} aria-label={title}>
      <Cursor
        frame={frame}
        title={title}
        last={last}
        position={shown}
        setPosition={setPosition}
        positionAt={(pixels) => Math.round(x.invert(pixels))}
        text={(at) => describe(nameOf(at), at, series, format)}
        anchor={anchor}
        setAnchor={setAnchor}
        onSelect={select}
        onPick={postsOf && showPosts}
      >
        <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
          <g class={css.axis}>
            {tickTexts(ticks, isRate).map((text, index) => (
              <g key={text} transform={`translate(0 ${y(ticks[index] ?? 0)})`}>
                <line x1={MARGIN.left} x2={right} class={ticks[index] === 0 ? css.zero : ""} />
                <text x={MARGIN.left - 8} dy="0.32em" text-anchor="end">
                  {text}
                </text>
              </g>
            ))}
            {dayTicks(dates, Math.max(1, Math.floor((right - MARGIN.left) / 72))).map((tick) => (
              <text key={tick} x={x(tick)} y={HEIGHT - 6} text-anchor="middle">
                {day(dates[tick] ?? "", dates.at(-1))}
              </text>
            ))}
          </g>
          {anchor !== null && shown !== null && anchor !== shown && (
            <rect
              class={css.selection}
              x={x(Math.min(anchor, shown))}
              width={x(Math.max(anchor, shown)) - x(Math.min(anchor, shown))}
              y={MARGIN.top}
              height={HEIGHT - MARGIN.bottom - MARGIN.top}
            />
          )}
          {[...series].reverse().map((one, index) => (
            <Line key={index} series={one} today={today} x={x} y={y} hasArea={hasArea} />
          ))}
          {[...(events?.keys() ?? [])].map((at) => (
            <path key={at} class={css.event} d={`M${x(at)},${markTop(series, at, y)}m-4,-7h8l-4,7z`} />
          ))}
          <Labels series={series} x={() => right + 8} width={width - right - 8} y={y} />
          {labelled(series).length === 0 && (
            <text class={css.nothing} x={(MARGIN.left + right) / 2} y={HEIGHT / 2} text-anchor="middle">
              Nothing is known of these days
            </text>
          )}
          {shown !== null && (
            <Crosshair
              at={shown}
              series={series}
              x={x}
              y={y}
              top={MARGIN.top}
              bottom={HEIGHT - MARGIN.bottom}
            />
          )}
        </svg>
        {shown !== null && (
          <Tooltip
            name={`${nameOf(shown)}${shown === today ? ", so far" : ""}`}
            dates={dates}
            series={series}
            at={shown}
            format={format}
            event={events?.get(shown)}
            left={x(shown)}
            isLeft={x(shown) > width / 2}
          />
        )}
      </Cursor>
      <ChartTable
        title={title}
        heading="Day (UTC)"
        positions={dates}
        name={(date) => nameOf(dates.indexOf(date))}
        series={series}
        format={format}
      />
    </figure>
  );
}

/** Above the line, or at the axis where there is none. */
function markTop(series: readonly Series[], at: number, y: Scale): number {
  const value = series[0] && drawnOf(series[0])[at];
  return Math.max(MARGIN.top, y(value ?? 0) - 6);
}

interface LineProps {
  series: Series;
  today: number;
  x: Scale;
  y: Scale;
  hasArea: boolean;
}

export function Line({ series, today, x, y, hasArea }: LineProps) {
  const { isPrevious, steps } = series;
  const values = drawnOf(series);
  const { complete, running, lone } = strokes(values, isPrevious ? -1 : today, x, y, steps !== undefined);
  const floor = values.map((value) => value && 0);
  return (
    <g class={colourClass(series)}>
      {hasArea && !isPrevious && (
        <path class={css.area} d={bandPath(floor, values, { x, y, hasSteps: steps !== undefined })} />
      )}
      <path d={complete} />
      <path class={css.running} d={running} />
      <path class={css.lone} d={lone} />
    </g>
  );
}

/** The names of the series beside their last known values. */
export function Labels({
  series,
  x,
  width,
  y,
}: {
  series: readonly Series[];
  x: (series: Series) => number;
  width: number;
  y: Scale;
}) {
  const known = labelled(series);
  const wanted = known.map((one) => y(drawnOf(one).findLast((value) => value !== null) ?? 0));
  const placed = placeLabels(wanted, LABEL_GAP, MARGIN.top, HEIGHT - MARGIN.bottom);
  return known.map((one, index) => {
    return (
      <text
        key={index}
        class={`${css.label} ${colourClass(one)}`}
        x={x(one)}
        y={placed[index] ?? 0}
        dy="0.32em"
      >
        {fitName(one.name, width)}
      </text>
    );
  });
}

interface SparklineProps {
  values: Values;
  label: string;
  today?: number;
  base?: Base;
  format?: (value: number | null) => string;
}

const SPARK = { width: 96, height: 24 };

/** The shape of some values, without axes: for a row of a table. */
export function Sparkline({ values, label, today = -1, base = "zero", format = exact }: SparklineProps) {
  const known = values.filter((value) => value !== null);
  const [least, greatest] = [
    Math.min(...known, ...(base === "zero" ? [0] : [])),
    Math.max(...known, ...(base === "zero" ? [0] : [])),
  ];
  const x = linearScale(values.length > 1 ? [0, values.length - 1] : [-1, 1], [2, SPARK.width - 2]);
  const y = linearScale(least < greatest ? [least, greatest] : [least - 1, least + 1], [SPARK.height - 2, 2]);
  const { complete, running, lone } = strokes(values, today, x, y);
  const title =
    known.length === 0
      ? `${label}: nothing known`
      : `${label}: from ${format(Math.min(...known))} to ${format(Math.max(...known))}`;
  return (
    <svg
      class={css.sparkline}
      viewBox={`0 0 ${SPARK.width} ${SPARK.height}`}
      width={SPARK.width}
      height={SPARK.height}
      preserveAspectRatio="none"
      role="img"
      aria-label={title}
    >
      <title>{title}</title>
      <path d={complete} />
      {running && <path class={css.running} d={running} />}
      {lone && <path class={css.lone} d={lone} />}
    </svg>
  );
}
