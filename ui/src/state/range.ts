// The days that a page shows. All are in UTC.

/** Those of the API end today or yesterday; the others become days of one's own. */
export const API_PERIODS = ["7d", "30d", "90d"] as const;
export const PERIODS = [
  "7d",
  "28d",
  "30d",
  "90d",
  "this_week",
  "last_week",
  "this_month",
  "last_month",
  "this_quarter",
  "last_quarter",
  "this_year",
  "last_year",
  "731d",
] as const;
export type Period = (typeof PERIODS)[number];

export interface Range {
  period: Period | "custom";
  /** Both are set for a custom range, and only then. */
  start: string | null;
  end: string | null;
  includeToday: boolean;
}

interface Days {
  start: string;
  end: string;
}

const DAY_MS = 86_400_000;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The longest window that the API takes, in days. */
export const MAX_DAYS = 731;
/** The longest window, in days, of the days of several records. */
export const MAX_SERIES_DAYS = 92;

function format(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export function addDays(day: string, count: number): string {
  return format(Date.parse(day) + count * DAY_MS);
}

/** The current day in UTC. */
export function utcToday(): string {
  return format(Date.now());
}

/** The first day of the week, month, quarter or year of a day. */
function unitStart(unit: string, day: string): string {
  const date = new Date(day);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  if (unit === "week") return addDays(day, -((date.getUTCDay() + 6) % 7));
  const first = unit === "year" ? 0 : unit === "quarter" ? month - (month % 3) : month;
  return format(Date.UTC(year, first));
}

/** The days of a period, the last of which is today at most. */
function periodDays(period: Period, today: string, includeToday: boolean): Days {
  const last = includeToday ? today : addDays(today, -1);
  if (period.endsWith("d")) return { start: addDays(last, 1 - Number(period.slice(0, -1))), end: last };
  const [which, unit = ""] = period.split("_");
  const start = unitStart(unit, today);
  // On the first day of a week, there is no other one yet.
  if (which === "this") return { start, end: [start, last].sort()[1] ?? start };
  const end = addDays(start, -1);
  return { start: unitStart(unit, end), end };
}

/** The first and the last day of a range. */
export function daysOf({ period, start, end, includeToday }: Range, today = utcToday()): Days {
  if (period === "custom") return { start: start ?? today, end: end ?? today };
  return periodDays(period, today, includeToday);
}

/** The window as parameters of the API. */
export function windowParameters(range: Range) {
  const period = API_PERIODS.find((period) => period === range.period);
  if (period) return { period, ...(range.includeToday ? {} : { include_today: false }) };
  const { start, end } = daysOf(range);
  return { period: "custom" as const, start_date: start, end_date: end };
}

/** The same day of the year before; of 29 February, none that there is. */
export function dayYearBefore(day: string): string {
  return `${String(Number(day.slice(0, 4)) - 1).padStart(4, "0")}${day.slice(4)}`;
}

/** The same days of the year before; of 29 February, the day before it. */
export function yearBefore(range: Range): Range {
  const shift = (day: string) => dayYearBefore(day).replace(/-02-29$/, "-02-28");
  const { start, end } = daysOf(range);
  return { period: "custom", start: shift(start), end: shift(end), includeToday: false };
}

/** Number of days of a range. */
export function rangeDays(range: Range): number {
  const { start, end } = daysOf(range);
  return (Date.parse(end) - Date.parse(start)) / DAY_MS + 1;
}

/** Whether a range ends with the day that is not over, of which nothing can be compared with whole days. */
export function hasToday(range: Range): boolean {
  return daysOf(range).end >= utcToday();
}

/** Whether it is chosen if the range ends with today. */
export function mayHaveToday({ period }: Range): boolean {
  return period !== "custom" && !period.startsWith("last_");
}

export function isDay(text: string | null): text is string {
  if (!text || !DAY.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

export function parseRange(query: URLSearchParams): Range {
  const [start, end, today] = [query.get("start_date"), query.get("end_date"), utcToday()];
  if (query.get("period") === "custom" && isDay(start) && isDay(end) && start <= end && start <= today) {
    // Later days have nothing to show.
    return { period: "custom", start, end: [end, today].sort()[0] ?? end, includeToday: false };
  }
  return {
    period: PERIODS.find((period) => period === query.get("period")) ?? "30d",
    start: null,
    end: null,
    includeToday: query.get("include_today") === "true",
  };
}
