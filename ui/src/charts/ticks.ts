// Where the axes of a chart have ticks.

import { ticks as linearTicks } from "d3-array";

const DAY_MS = 86_400_000;

/** Round values from the least to the greatest, always with 0: a gain is read against zero. */
export function valueTicks(values: Iterable<number | null>, count = 4): number[] {
  let [least, greatest] = [0, 0];
  for (const value of values) {
    if (value === null) continue;
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  if (least === greatest) return [0, 1];
  const wholeTicks = linearTicks(least, greatest, count).filter(Number.isInteger);
  const ticks = wholeTicks.length > 1 ? wholeTicks : [Math.floor(least), Math.ceil(greatest)];
  const step = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  if ((ticks[0] ?? 0) > least) ticks.unshift((ticks[0] ?? 0) - step);
  if ((ticks.at(-1) ?? 0) < greatest) ticks.push((ticks.at(-1) ?? 0) + step);
  return ticks;
}

function dayNumber(date: string): number {
  return Date.parse(`${date}T00:00:00Z`) / DAY_MS;
}

/** Positions of at most `count` labelled days: first days of months where the range is long, Mondays where it is short, else all. */
export function dayTicks(dates: readonly string[], count: number): number[] {
  const positions = dates.map((_, position) => position);
  if (dates.length <= count) return positions;
  const weekday = (position: number) => (dayNumber(dates[position] ?? "") + 4) % 7;
  const dayOfMonth = (position: number) => (dates[position] ?? "").slice(8);
  const month = (position: number) => Number((dates[position] ?? "").slice(5, 7)) - 1;
  const candidates = [
    positions.filter((position) => weekday(position) === 1),
    positions.filter((position) => dayOfMonth(position) === "01"),
    positions.filter((position) => dayOfMonth(position) === "01" && month(position) % 3 === 0),
  ];
  const fitting = candidates.find((ticks) => ticks.length <= count && ticks.length > 1);
  if (fitting) return fitting;
  const step = Math.ceil(dates.length / count);
  return positions.filter((position) => position % step === 0);
}
