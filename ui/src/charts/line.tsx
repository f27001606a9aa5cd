// A line chart over days: the current values, those of the previous period dashed, today dotted, and gaps where nothing is known.

import { max } from "d3-array";
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { useRef, useState } from "preact/hooks";

import { compact, day, exact } from "../format.ts";
import { useWidth } from "./size.ts";
import { dayTicks, valueTicks } from "./ticks.ts";

export interface Series {
  name: string;
  values: readonly (number | null)[];
  /** Number of the series' colour in the style sheet. */
  colour: 1 | 2 | 3 | 4 | 5;
  isPrevious?: boolean;
}

interface Props {
  /** Says what the chart shows, for assistive technology. */
  title: string;
  dates: readonly string[];
  series: readonly Series[];
  /** Position of the day that is not over; -1 without. */
  today: number;
  format?: (value: number | null) => string;
}

const HEIGHT = 260;
const MARGIN = { top: 12, right: 78, bottom: 26, left: 46 };

export function LineChart({ title, dates, series, today, format = exact }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const [position, setPosition] = useState<number | null>(null);
  const ticks = valueTicks(series.flatMap(({ values }) => values));
  const x = scaleLinear([0, Math.max(1, dates.length - 1)], [MARGIN.left, width - MARGIN.right]);
  const y = scaleLinear([ticks[0] ?? 0, ticks.at(-1) ?? 1], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const positionAt = (event: PointerEvent) => {
    const left = event.clientX - (frame.current?.getBoundingClientRect().left ?? 0);
    setPosition(Math.max(0, Math.min(dates.length - 1, Math.round(x.invert(left)))));
  };
  return (
    <figure class="chart" aria-label={title}>
      <div ref={frame} class="chart-frame" onPointerMove={positionAt} onPointerLeave={() => setPosition(null)}>
        <svg width={width} height={HEIGHT} aria-hidden="true">
          <g class="axis">
            {ticks.map((tick) => (
              <g key={tick} transform={`translate(0 ${y(tick)})`}>
                <line x1={MARGIN.left} x2={width - MARGIN.right} class={tick === 0 ? "zero" : ""} />
                <text x={MARGIN.left - 8} dy="0.32em" text-anchor="end">{compact(tick)}</text>
              </g>
            ))}
            {dayTicks(dates, Math.floor(width / 90)).map((tick) => (
              <text key={tick} x={x(tick)} y={HEIGHT - 6} text-anchor="middle">{day(dates[tick] ?? "", dates.at(-1))}</text>
            ))}
          </g>
          {[...series].reverse().map((one) => <Line key={one.name} series={one} today={today} x={x} y={y} />)}
          <Labels series={series} x={width - MARGIN.right + 8} y={y} />
          {position !== null && <line class="cursor" x1={x(position)} x2={x(position)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} />}
        </svg>
        {position !== null && (
          <div class="tooltip" style={{ left: `${Math.min(x(position) + 12, width - 190)}px` }}>
            <strong>{day(dates[position] ?? "")}{position === today && ", so far"}</strong>
            {series.map(({ name, values, colour }) => (
              <span key={name} class={`series-${colour}`}>{name} <b>{format(values[position] ?? null)}</b></span>
            ))}
          </div>
        )}
      </div>
      <ChartTable title={title} dates={dates} series={series} format={format} />
    </figure>
  );
}

type Scale = (value: number) => number;

function Line({ series: { values, colour, isPrevious }, today, x, y }: { series: Series; today: number; x: Scale; y: Scale }) {
  const path = line<number | null>((_, position) => x(position), (value) => y(value ?? 0)).defined((value) => value !== null);
  const isOver = isPrevious || today < 0;
  const complete = isOver ? values : values.map((value, position) => (position < today ? value : null));
  const running = isOver ? [] : values.map((value, position) => (position >= today - 1 ? value : null));
  return (
    <g class={`series-${colour}${isPrevious ? " previous" : ""}`}>
      <path d={path(complete) ?? ""} />
      {running.length > 0 && <path class="running" d={path(running) ?? ""} />}
    </g>
  );
}

/** The names of the series beside their last values, moved apart where they would overlap. */
function Labels({ series, x, y }: { series: readonly Series[]; x: number; y: Scale }) {
  const last = (values: readonly (number | null)[]) => values.findLast((value) => value !== null) ?? 0;
  const labels = series.map((one) => ({ ...one, at: y(last(one.values)) })).sort((a, b) => a.at - b.at);
  let lowest = -Infinity;
  return labels.map(({ name, colour, at }) => {
    lowest = Math.max(at, lowest + 14);
    return <text key={name} class={`label series-${colour}`} x={x} y={lowest} dy="0.32em">{name}</text>;
  });
}

interface TableProps {
  title: string;
  dates: readonly string[];
  series: readonly Series[];
  format: (value: number | null) => string;
}

/** The values as a table, for those who do not see the chart or want the digits. */
function ChartTable({ title, dates, series, format }: TableProps) {
  return (
    <details class="chart-table">
      <summary>Table</summary>
      <table>
        <caption>{title}</caption>
        <thead>
          <tr><th scope="col">Day (UTC)</th>{series.map(({ name }) => <th key={name} scope="col" class="number">{name}</th>)}</tr>
        </thead>
        <tbody>
          {dates.map((date, position) => (
            <tr key={date}>
              <th scope="row">{day(date)}</th>
              {series.map(({ name, values }) => <td key={name} class="number">{format(values[position] ?? null)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

/** The shape of some values, without axes: for a table's row. Its title says the least, the greatest and the sum. */
export function Sparkline({ values, label }: { values: readonly (number | null)[]; label: string }) {
  const [width, height] = [96, 24];
  const known = values.filter((value) => value !== null);
  const ticks = valueTicks(values, 2);
  const x = scaleLinear([0, Math.max(1, values.length - 1)], [1, width - 1]);
  const y = scaleLinear([Math.min(0, ticks[0] ?? 0), max(known) || 1], [height - 2, 2]);
  const path = line<number | null>((_, position) => x(position), (value) => y(value ?? 0)).defined((value) => value !== null);
  return (
    <svg class="sparkline" width={width} height={height} role="img" aria-label={label}>
      <title>{label}</title>
      <path d={path(values) ?? ""} />
    </svg>
  );
}
