// Where the axes of a chart have ticks, and what these say.

import { ticks as linearTicks } from "d3-array";

const DAY_MS = 86_400_000;
const UNITS = [
  { size: 1e12, name: "T" },
  { size: 1e9, name: "B" },
  { size: 1e6, name: "M" },
  { size: 1e3, name: "k" },
  { size: 1, name: "" },
] as const;

export type Base = "zero" | "least";

/** The least and the greatest value, and zero unless `base` is `least`: a gain is read against zero, a level need not be. */
function extent(values: Iterable<number | null>, base: Base): [number, number] {
  let [least, greatest] = base === "zero" ? [0, 0] : [Infinity, -Infinity];
  for (const value of values) {
    if (value === null) continue;
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  return least > greatest ? [0, 0] : [least, greatest];
}

/** About `count` round values that enclose all values; whole ones if all values are. */
export function valueTicks(values: readonly (number | null)[], count = 4, base: Base = "zero"): number[] {
  const [least, greatest] = extent(values, base);
  if (least === greatest) return least === 0 ? [0, 1] : [least - 1, least, least + 1];
  const areWhole = values.every((value) => value === null || Number.isInteger(value));
  const round = linearTicks(least, greatest, count).filter((tick) => !areWhole || Number.isInteger(tick));
  const ticks = round.length > 1 ? round : [Math.floor(least), Math.ceil(greatest)];
  const step = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  if ((ticks[0] ?? 0) > least) ticks.unshift((ticks[0] ?? 0) - step);
  if ((ticks.at(-1) ?? 0) < greatest) ticks.push((ticks.at(-1) ?? 0) + step);
  return ticks;
}

/** Those of 1 in the greatest unit. */
const MAX_DECIMALS = 12;

/** Digits after the point that tell apart values which differ by `step`. */
function decimalsOf(step: number): number {
  for (let decimals = 0; decimals < MAX_DECIMALS; decimals++) {
    const scaled = Math.abs(step) * 10 ** decimals;
    if (scaled > 0.5 && Math.abs(scaled - Math.round(scaled)) < 1e-6) return decimals;
  }
  return MAX_DECIMALS;
}

/** Texts of ticks, all in one unit and with as many digits as tell them apart. */
export function tickTexts(ticks: readonly number[], isRate = false): string[] {
  const greatest = Math.max(...ticks.map(Math.abs));
  const unit = isRate ? { size: 0.01, name: " %" } : (UNITS.find(({ size }) => greatest >= size) ?? UNITS[4]);
  const decimals = decimalsOf(((ticks[1] ?? 0) - (ticks[0] ?? 0)) / unit.size);
  return ticks.map((tick) => {
    if (tick === 0) return "0";
    const digits = (Math.abs(tick) / unit.size).toFixed(decimals);
    return `${tick < 0 ? "−" : ""}${digits}${unit.name}`;
  });
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
