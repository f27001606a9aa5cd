// What a post had at each age, and what posts of its account usually have.

import { useRef, useState } from "preact/hooks";
import * as css from "../../charts/chart.module.css";
import { Crosshair, Cursor, describe, Tooltip } from "../../charts/cursor.tsx";
import { HEIGHT, Labels, Line, MARGIN } from "../../charts/line.tsx";
import { bandPath, linearScale } from "../../charts/paths.ts";
import type { Series, Values } from "../../charts/series.ts";
import { useWidth } from "../../charts/size.ts";
import { tickTexts, valueTicks } from "../../charts/ticks.ts";
import { ChartTable } from "../../charts/twin.tsx";
import { compact, exact, plural } from "../../format.ts";

interface Range {
  p10: number | null;
  p50: number | null;
  p90: number | null;
}

interface Props {
  title: string;
  /** In days, ascending. */
  ages: readonly number[];
  values: Values;
  /** Of the account's posts at each age. */
  usual: readonly Range[];
}

const RIGHT_MARGIN = 84;
const MIN_TICK_GAP = 22;

/** Positions whose ticks do not touch the one before. */
function tickPositions(count: number, x: (position: number) => number): number[] {
  const shown: number[] = [];
  for (let position = 0; position < count; position++) {
    const last = shown.at(-1);
    if (last === undefined || x(position) - x(last) >= MIN_TICK_GAP) shown.push(position);
  }
  return shown;
}

/** From this ratio of the greatest value to the least on, the axis is logarithmic: what is usual would be a line at the bottom. */
const LOG_FROM = 50;

function axisOf(values: readonly number[]): {
  ticks: readonly number[];
  texts: readonly string[];
  y: (value: number) => number;
} {
  const pixels = [HEIGHT - MARGIN.bottom, MARGIN.top] as const;
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  if (least <= 0 || greatest / least < LOG_FROM) {
    const ticks = valueTicks(values);
    return { ticks, texts: tickTexts(ticks), y: linearScale([ticks[0] ?? 0, ticks.at(-1) ?? 1], pixels) };
  }
  const [low, high] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(greatest))];
  const ticks = Array.from({ length: high - low + 1 }, (_, number) => 10 ** (low + number));
  const scale = linearScale([low, high], pixels);
  return { ticks, texts: ticks.map(compact), y: (value) => scale(Math.log10(Math.max(value, 10 ** low))) };
}

function seriesOf(values: Values, usual: readonly Range[]) {
  const ofUsual = (name: string, quantile: keyof Range): Series => ({
    name,
    values: usual.map((range) => range[quantile]),
    colour: 1,
    isPrevious: true,
  });
  return {
    post: { name: "This post", values, colour: 1 } satisfies Series,
    median: ofUsual("Median", "p50"),
    low: ofUsual("Lowest tenth", "p10"),
    high: ofUsual("Highest tenth", "p90"),
  };
}

/** Posts gain most in their first days: ages are placed by their logarithm. */
export function AgeChart({ title, ages, values, usual }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<number | null>(null);
  const width = useWidth();
  if (width === 0) return null;
  const right = width - RIGHT_MARGIN;
  const { post, median, low, high } = seriesOf(values, usual);
  const all: readonly Series[] = [post, median, low, high];
  const known = [post, low, high].flatMap(({ values }) => values.filter((value) => value !== null));
  const { ticks, texts, y } = axisOf(known);
  const scale = linearScale([Math.log(ages[0] ?? 1), Math.log(ages.at(-1) ?? 2)], [MARGIN.left, right]);
  const x = (position: number) => scale(Math.log(ages[position] ?? 1));
  const areKnown = usual.map(({ p10, p90 }) => p10 !== null && p90 !== null);
  const boundOf = (quantile: "p10" | "p90") =>
    usual.map((range, position) => (areKnown[position] ? range[quantile] : null));
  const band = bandPath(boundOf("p10"), boundOf("p90"), { x, y });
  const nearest = (pixels: number) => {
    const distances = ages.map((_, position) => Math.abs(x(position) - pixels));
    return distances.indexOf(Math.min(...distances));
  };
  const nameOf = (position: number) => `After ${plural(ages[position] ?? 0, "day")}`;
  return (
    <figure class={css.chart} aria-label={title}>
      <Cursor
        frame={frame}
        title={title}
        last={ages.length - 1}
        position={shown}
        setPosition={setShown}
        positionAt={nearest}
        text={(at) => describe(nameOf(at), at, all, exact)}
      >
        <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
          <g class={css.axis}>
            {texts.map((text, index) => (
              <g key={text} transform={`translate(0 ${y(ticks[index] ?? 0)})`}>
                <line x1={MARGIN.left} x2={right} class={ticks[index] === 0 ? css.zero : ""} />
                <text x={MARGIN.left - 8} dy="0.32em" text-anchor="end">
                  {text}
                </text>
              </g>
            ))}
            {tickPositions(ages.length, x).map((position) => (
              <text key={position} x={x(position)} y={HEIGHT - 6} text-anchor="middle">
                {ages[position]}
              </text>
            ))}
          </g>
          <path class={css.band} d={band} />
          <Line series={median} today={-1} x={x} y={y} hasArea={false} />
          <Line series={post} today={-1} x={x} y={y} hasArea={false} />
          <Labels
            series={[post, median]}
            x={({ values }) => x(values.findLastIndex((value) => value !== null)) + 8}
            width={RIGHT_MARGIN - 8}
            y={y}
          />
          {shown !== null && (
            <Crosshair
              at={shown}
              series={[post, median]}
              x={x}
              y={y}
              top={MARGIN.top}
              bottom={HEIGHT - MARGIN.bottom}
            />
          )}
        </svg>
        {shown !== null && (
          <Tooltip
            name={nameOf(shown)}
            series={all}
            at={shown}
            format={exact}
            left={x(shown)}
            isLeft={x(shown) > width / 2}
          />
        )}
      </Cursor>
      <ChartTable
        title={title}
        heading="Age in days"
        positions={ages.map(String)}
        name={String}
        series={all}
        format={exact}
      />
    </figure>
  );
}
