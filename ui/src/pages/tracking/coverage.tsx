// The share of accounts and posts that was observed each day, as a calendar of weeks.

import { useResource } from "../../api/resource.ts";
import { ChartTable } from "../../charts/twin.tsx";
import { Card } from "../../components/parts.tsx";
import { day, exact, plural } from "../../format.ts";
import { fetchCoverage } from "../../loads/tracking.ts";
import { view } from "../../state/view.ts";
import * as css from "./coverage.module.css";

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** Monday is 0. */
function weekday(date: string): number {
  return (new Date(`${date}T00:00:00Z`).getUTCDay() + 6) % 7;
}

const LEVELS = { unknown: css.unknown, none: css.none, part: css.part, full: css.full };
type Level = keyof typeof LEVELS;

interface CoverageDay {
  date: string;
  observed: number;
  expected: number;
}

function levelOf({ observed, expected }: CoverageDay): Level {
  if (expected === 0) return "unknown";
  if (observed === 0) return "none";
  return observed >= expected ? "full" : "part";
}

export function useCoverage() {
  const current = view.value;
  return useResource((signal) => fetchCoverage(current, signal), [JSON.stringify(current.range)]);
}

export function Coverage({ coverage }: { coverage: ReturnType<typeof useCoverage> }) {
  return (
    <Card title="Observed per day" resource={coverage} height={210} note="of what was to be observed">
      {({ data, meta }) => (
        <>
          <Calendar days={data} today={meta.complete_through} />
          <p class={`${css.legend} small quiet`} aria-hidden="true">
            <span>
              <i class={css.full} />
              all
            </span>
            <span>
              <i class={css.part} style={{ "--share": 0.6 }} />
              some
            </span>
            <span>
              <i class={css.none} />
              none
            </span>
            <span>
              <i class={css.unknown} />
              nothing expected
            </span>
          </p>
          <ChartTable
            title="Observed per day"
            heading="Day (UTC)"
            positions={data.map(({ date }) => date)}
            name={day}
            format={exact}
            series={[
              { name: "Observed", values: data.map(({ observed }) => observed), colour: 1 },
              { name: "Expected", values: data.map(({ expected }) => expected), colour: 2 },
            ]}
          />
        </>
      )}
    </Card>
  );
}

/** Weeks as columns. The first day says its month, and each first of a month. */
function Calendar({ days, today }: { days: readonly CoverageDay[]; today: string }) {
  const first = weekday(days[0]?.date ?? "1970-01-05");
  const week = (position: number) => Math.floor((first + position) / 7);
  const months = days.flatMap(({ date }, position) =>
    position === 0 || date.endsWith("-01") ? [{ date, column: week(position) + 2 }] : [],
  );
  // A few days of a month before the next one go without: its name would stand over that one.
  const labels = months.filter(({ column }, index) => (months[index + 1]?.column ?? Infinity) - column > 2);
  return (
    <div class={css.calendarFrame} tabIndex={0} role="img" aria-label={summary(days)}>
      <div class={css.calendar}>
        {labels.map(({ date, column }) => (
          <span key={date} class={`small quiet ${css.month}`} style={{ gridColumn: column }}>
            {day(date, date).split(" ")[1]}
          </span>
        ))}
        {WEEKDAYS.map((name, row) => (
          <span key={name} class={`small quiet ${css.weekday}`} style={{ gridRow: row + 2 }}>
            {row % 2 === 0 ? name : ""}
          </span>
        ))}
        {days.map((one, position) => (
          <i
            key={one.date}
            class={`${LEVELS[levelOf(one)]}${one.date > today ? ` ${css.today}` : ""}`}
            title={`${day(one.date)}${one.date > today ? ", so far" : ""}: ${exact(one.observed)} of ${exact(one.expected)}`}
            style={{
              gridColumn: week(position) + 2,
              gridRow: weekday(one.date) + 2,
              "--share": one.expected > 0 ? one.observed / one.expected : 0,
            }}
          />
        ))}
      </div>
    </div>
  );
}

function summary(days: readonly CoverageDay[]): string {
  const count = (level: Level) => days.filter((one) => levelOf(one) === level).length;
  return `${plural(days.length, "day")}: on ${count("full")} all were observed, on ${count("part")} some, on ${count("none")} none. The table has the numbers.`;
}
