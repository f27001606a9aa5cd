// What charts are drawn with: scales from values to pixels, and lines and areas that have gaps where nothing is known.

import type { Scale, Values } from "./series.ts";

type Interval = readonly [number, number];
type Point = readonly [x: number, y: number];

export interface LinearScale extends Scale {
  /** From pixels to a value. */
  invert: Scale;
}

function between([fromStart, fromEnd]: Interval, [toStart, toEnd]: Interval): Scale {
  const span = fromEnd - fromStart;
  return (value) => toStart + (span === 0 ? 0.5 : (value - fromStart) / span) * (toEnd - toStart);
}

export function linearScale(values: Interval, pixels: Interval): LinearScale {
  return Object.assign(between(values, pixels), { invert: between(pixels, values) });
}

/** Positions of values that follow each other without a gap. */
function runs(values: Values): number[][] {
  const found: number[][] = [];
  for (const [position, value] of values.entries()) {
    if (value === null) continue;
    const last = found.at(-1);
    if (last?.at(-1) === position - 1) last.push(position);
    else found.push([position]);
  }
  return found;
}

/** The points between which a level changes: halfway from one position to the next. */
function stepped(points: readonly Point[]): Point[] {
  return points.flatMap(([x, y], index) => {
    const before = points[index - 1];
    if (!before) return [[x, y] as const];
    const middle = (before[0] + x) / 2;
    const corner: Point[] = [
      [middle, before[1]],
      [middle, y],
    ];
    return index === points.length - 1 ? [...corner, [x, y] as const] : corner;
  });
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

function join(points: readonly Point[]): string {
  return points.map(([x, y]) => `${rounded(x)},${rounded(y)}`).join("L");
}

export interface Curve {
  x: Scale;
  y: Scale;
  /** Whether a value holds around its position, instead of changing towards the next. */
  hasSteps?: boolean;
}

/** The line of each run of values. */
function lines(values: Values, { x, y, hasSteps = false }: Curve): Point[][] {
  return runs(values).map((positions) => {
    const points = positions.map((position): Point => [x(position), y(values[position] ?? 0)]);
    return hasSteps ? stepped(points) : points;
  });
}

export function linePath(values: Values, curve: Curve): string {
  return lines(values, curve)
    .map((points) => `M${join(points)}${points.length === 1 ? "Z" : ""}`)
    .join("");
}

/** Between two lines that have gaps at the same positions. */
export function bandPath(low: Values, high: Values, curve: Curve): string {
  const below = lines(low, curve);
  return lines(high, curve)
    .map((points, run) => `M${join([...points, ...(below[run]?.toReversed() ?? [])])}Z`)
    .join("");
}
