// The strokes of a line: complete days, the day that is not over, and days that stand alone between gaps.

import { linePath } from "./paths.ts";
import type { Scale, Values } from "./series.ts";

export interface Strokes {
  complete: string;
  /** From the last complete day to today. */
  running: string;
  /** Dots: a line needs two points. */
  lone: string;
}

/** Positions of known values without a known neighbour. */
export function lonePositions(values: Values): number[] {
  const isKnown = (position: number) => typeof values[position] === "number";
  return values.flatMap((_, position) =>
    isKnown(position) && !isKnown(position - 1) && !isKnown(position + 1) ? [position] : [],
  );
}

/** `today` is the position of the day that is not over; -1 without. */
export function strokes(values: Values, today: number, x: Scale, y: Scale, hasSteps = false): Strokes {
  const draw = (from: number, to: number) =>
    linePath(
      values.map((value, position) => (position >= from && position < to ? value : null)),
      { x, y, hasSteps },
    );
  const dots = lonePositions(values).map((position) => `M${x(position)},${y(values[position] ?? 0)}h0`);
  if (today < 0) return { complete: draw(0, values.length), running: "", lone: dots.join("") };
  return { complete: draw(0, today), running: draw(today - 1, values.length), lone: dots.join("") };
}
