// Times relative to now; the title has the exact one.

import { duration, time } from "../format.ts";

function relative(value: string): string {
  const seconds = (Date.parse(value) - Date.now()) / 1_000;
  if (Math.abs(seconds) < 60) return "now";
  return seconds > 0 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
}

export function When({ value }: { value: string | null | undefined }) {
  return value ? (
    <time dateTime={value} title={time(value)}>
      {relative(value)}
    </time>
  ) : (
    <>–</>
  );
}
