// Days of one's own: two fields, and a calendar whose first click chooses the first day and whose second the last.

import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { day, month } from "../format.ts";
import { addDays, isDay, MAX_DAYS, type Range, rangeDays, utcToday } from "../state/range.ts";
import { navigate } from "../state/view.ts";
import * as css from "./day-range.module.css";
import { Menu } from "./menu.tsx";
import { WEEKDAYS, weeksOf } from "./weeks.ts";

interface Chosen {
  start: string;
  /** Empty until it is chosen. */
  end: string;
}

function rangeOf({ start, end }: Chosen): Range {
  return { period: "custom", start, end, includeToday: false };
}

/** Why these days cannot be shown. */
function problemOf({ start, end }: Chosen): string | null {
  if (!isDay(start) || !isDay(end)) return "Days are written as 2026-03-09";
  if (start > end) return "The first day is after the last";
  if (end > utcToday()) return "Later days have no numbers yet";
  return rangeDays(rangeOf({ start, end })) > MAX_DAYS ? `At most ${MAX_DAYS} days` : null;
}

export function DayRange({ range }: { range: Range }) {
  const shown = { start: range.start ?? "", end: range.end ?? "" };
  const [chosen, choose] = useState<Chosen>(shown);
  // Before a person types other days.
  useLayoutEffect(() => choose(shown), [range.start, range.end]);
  const problem = problemOf(chosen);
  const show = (days: Chosen) => {
    choose(days);
    if (problemOf(days) === null) navigate({ range: rangeOf(days) });
  };
  const field = (name: keyof Chosen, label: string) => (
    <input
      type="text"
      class={css.day}
      aria-label={label}
      placeholder="2026-03-09"
      maxLength={10}
      value={chosen[name]}
      onInput={({ currentTarget: { value } }) => choose({ ...chosen, [name]: value.trim() })}
    />
  );
  return (
    <form
      class="controls"
      onSubmit={(event) => {
        event.preventDefault();
        show(chosen);
      }}
    >
      {field("start", "First day (UTC)")}
      <span class="quiet" aria-hidden="true">
        –
      </span>
      {field("end", "Last day (UTC)")}
      <Menu label="Calendar" text="Calendar" isOpen={!range.start}>
        <Calendar chosen={chosen} onChoose={show} />
      </Menu>
      <button type="submit" disabled={problem !== null}>
        Show
      </button>
      <span class="small" role="status">
        {chosen.start && chosen.end ? problem : ""}
      </span>
    </form>
  );
}

/** Days by which keys move. */
const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };

/** The first day of the month that is so many months later. */
function monthStart(date: string, later = 0): string {
  return new Date(Date.UTC(Number(date.slice(0, 4)), Number(date.slice(5, 7)) - 1 + later))
    .toISOString()
    .slice(0, 10);
}

function Calendar({ chosen, onChoose }: { chosen: Chosen; onChoose: (days: Chosen) => void }) {
  const today = utcToday();
  const grid = useRef<HTMLTableElement>(null);
  const [current, setCurrent] = useState(isDay(chosen.end) && chosen.end <= today ? chosen.end : today);
  const first = monthStart(current);
  const next = monthStart(current, 1);
  const isStarted = isDay(chosen.start) && !chosen.end;
  const pick = (date: string) =>
    onChoose(isStarted && date >= chosen.start ? { ...chosen, end: date } : { start: date, end: "" });
  const isMoved = useRef(false);
  const move = (date: string) => {
    const shown = date < today ? date : today;
    isMoved.current = shown !== current;
    setCurrent(shown);
  };
  // Before the next key is handled, which may choose the day.
  useLayoutEffect(() => {
    if (isMoved.current) grid.current?.querySelector<HTMLElement>("[tabindex='0']")?.focus();
    isMoved.current = false;
  }, [current]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    const turn = event.key === "PageUp" ? -1 : event.key === "PageDown" ? 1 : 0;
    if (!step && !turn) return;
    event.preventDefault();
    move(step ? addDays(current, step) : monthStart(current, turn));
  };
  const turnTo = (name: string, sign: string, date: string) => (
    <button
      type="button"
      class="plain small"
      aria-label={name}
      onClick={() => setCurrent(date)}
      disabled={date > today}
    >
      {sign}
    </button>
  );
  return (
    <div class={css.calendar}>
      <header>
        {turnTo("Month before", "‹", monthStart(current, -1))}
        <b aria-live="polite">{month(first)}</b>
        {turnTo("Next month", "›", next)}
      </header>
      <table ref={grid} role="grid" aria-label={month(first)} onKeyDown={onKeyDown}>
        <thead>
          <tr>
            {WEEKDAYS.map((name) => (
              <th key={name} scope="col" abbr={name}>
                {name.slice(0, 2)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeksOf(first, addDays(next, -1)).map((week) => (
            <tr key={week.find(Boolean)}>
              {week.map((date, weekday) => (
                <Day
                  key={weekday}
                  date={date}
                  chosen={chosen}
                  isCurrent={date === current}
                  isLater={date !== null && date > today}
                  onPick={pick}
                />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <p class="small quiet">{isStarted ? "Now the last day." : "Choose the first day."}</p>
    </div>
  );
}

interface DayProps {
  /** Null beside the month. */
  date: string | null;
  chosen: Chosen;
  isCurrent: boolean;
  isLater: boolean;
  onPick: (date: string) => void;
}

function Day({ date, chosen: { start, end }, isCurrent, isLater, onPick }: DayProps) {
  if (date === null) return <td />;
  const isChosen = date === start || (date > start && date <= end);
  return (
    <td role="gridcell" aria-selected={isChosen}>
      <button
        type="button"
        aria-label={day(date)}
        tabIndex={isCurrent ? 0 : -1}
        disabled={isLater}
        onClick={() => onPick(date)}
      >
        {Number(date.slice(8))}
      </button>
    </td>
  );
}
