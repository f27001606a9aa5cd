// Days of a calendar, in weeks from Monday.

export const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const DAY_MS = 86_400_000;

/** The days of a range in weeks from Monday, with null before the first and after the last. */
export function weeksOf(start: string, end: string): (string | null)[][] {
  const count = (Date.parse(end) - Date.parse(start)) / DAY_MS + 1;
  const before = (new Date(start).getUTCDay() + 6) % 7;
  const days = Array.from({ length: Math.ceil((before + count) / 7) * 7 }, (_, position) => {
    const offset = position - before;
    return offset < 0 || offset >= count
      ? null
      : new Date(Date.parse(start) + offset * DAY_MS).toISOString().slice(0, 10);
  });
  return Array.from({ length: days.length / 7 }, (_, week) => days.slice(7 * week, 7 * week + 7));
}
