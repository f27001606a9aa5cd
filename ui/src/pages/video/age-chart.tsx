// What a post had at each age, and what posts of its account usually have.

import { scaleLinear } from "d3-scale";
import { area } from "d3-shape";
import * as css from "../../charts/chart.module.css";
import { HEIGHT, Labels, Line, MARGIN } from "../../charts/line.tsx";
import type { Series, Values } from "../../charts/series.ts";
import { useWidth } from "../../charts/size.ts";
import { tickTexts, valueTicks } from "../../charts/ticks.ts";
import { ChartTable } from "../../charts/twin.tsx";
import { exact } from "../../format.ts";

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

/** Posts gain most in their first days: ages are placed by their logarithm. */
export function AgeChart({ title, ages, values, usual }: Props) {
  const width = useWidth();
  if (width === 0) return null;
  const right = width - RIGHT_MARGIN;
  const ofUsual = (name: string, quantile: keyof Range): Series => ({
    name,
    values: usual.map((range) => range[quantile]),
    colour: 1,
    isPrevious: true,
  });
  const post: Series = { name: "This post", values, colour: 1 };
  const median = ofUsual("Median", "p50");
  const [low, high] = [ofUsual("Lowest tenth", "p10"), ofUsual("Highest tenth", "p90")];
  const ticks = valueTicks([post, low, high].flatMap(({ values }) => values));
  const scale = scaleLinear([Math.log(ages[0] ?? 1), Math.log(ages.at(-1) ?? 2)], [MARGIN.left, right]);
  const x = (position: number) => scale(Math.log(ages[position] ?? 1));
  const y = scaleLinear([ticks[0] ?? 0, ticks.at(-1) ?? 1], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const band = area<Range>(
    (_, position) => x(position),
    ({ p10 }) => y(p10 ?? 0),
    ({ p90 }) => y(p90 ?? 0),
  ).defined(({ p10, p90 }) => p10 !== null && p90 !== null);
  return (
    <figure class={css.chart} aria-label={title}>
      <div class={`${css.chartFrame} ${css.still}`}>
        <svg width={width} height={HEIGHT} aria-hidden="true">
          <g class={css.axis}>
            {tickTexts(ticks).map((text, index) => (
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
          <path class={css.band} d={band(usual) ?? ""} />
          <Line series={median} today={-1} x={x} y={y} hasArea={false} />
          <Line series={post} today={-1} x={x} y={y} hasArea={false} />
          <Labels
            series={[post, median]}
            x={({ values }) => x(values.findLastIndex((value) => value !== null)) + 8}
            width={RIGHT_MARGIN - 8}
            y={y}
          />
        </svg>
      </div>
      <ChartTable
        title={title}
        heading="Age in days"
        positions={ages.map(String)}
        name={String}
        series={[post, median, low, high]}
        format={exact}
      />
    </figure>
  );
}
