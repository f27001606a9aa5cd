// The day of a chart that is looked at, by pointer or keyboard, and its exact values.

import type { ComponentChildren, RefObject } from "preact";

import { day } from "../format.ts";
import * as css from "./chart.module.css";
import { colourClass, type Scale, type Series } from "./series.ts";

/** A day and its values, in words. */
export function describe(
  at: number,
  dates: readonly string[],
  series: readonly Series[],
  format: (value: number | null) => string,
): string {
  return `${day(dates[at] ?? "")}: ${series.map(({ name, values }) => `${name} ${format(values[at] ?? null)}`).join(", ")}`;
}

interface CursorProps {
  frame: RefObject<HTMLDivElement | null>;
  title: string;
  last: number;
  position: number | null;
  setPosition: (position: number | null) => void;
  x: { invert: (pixels: number) => number };
  text: (position: number) => string;
  children: ComponentChildren;
}

const STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageUp: -7,
  PageDown: 7,
  Home: -Infinity,
  End: Infinity,
};

/** Moves over the days: by pointer, and as a slider by keyboard. */
export function Cursor({ frame, title, last, position, setPosition, x, text, children }: CursorProps) {
  const clamp = (value: number) => Math.max(0, Math.min(last, value));
  const follow = (event: PointerEvent) => {
    const left = event.clientX - (frame.current?.getBoundingClientRect().left ?? 0);
    setPosition(clamp(Math.round(x.invert(left))));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") return setPosition(null);
    const step = STEPS[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    setPosition(clamp((position ?? last) + (position === null ? 0 : step)));
  };
  const now = position ?? last;
  return (
    <div
      ref={frame}
      class={css.chartFrame}
      tabIndex={0}
      role="slider"
      aria-label={`${title}: values by day`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, last)}
      aria-valuenow={Math.max(0, now)}
      aria-valuetext={text(now)}
      onKeyDown={onKeyDown}
      onBlur={() => setPosition(null)}
      onPointerMove={follow}
      onPointerDown={follow}
      onPointerLeave={() => setPosition(null)}
    >
      {children}
    </div>
  );
}

interface CrosshairProps {
  at: number;
  series: readonly Series[];
  x: Scale;
  y: Scale;
  top: number;
  bottom: number;
}

export function Crosshair({ at, series, x, y, top, bottom }: CrosshairProps) {
  return (
    <g class={css.crosshair}>
      <line x1={x(at)} x2={x(at)} y1={top} y2={bottom} />
      {series.map((one, index) => {
        const value = one.values[at];
        return (
          typeof value === "number" && (
            <circle key={index} class={colourClass(one)} cx={x(at)} cy={y(value)} r={4} />
          )
        );
      })}
    </g>
  );
}

interface TooltipProps {
  dates: readonly string[];
  series: readonly Series[];
  at: number;
  isToday: boolean;
  format: (value: number | null) => string;
  event: string | undefined;
  /** Position of the day in pixels, and whether the values stand left of it. */
  left: number;
  isLeft: boolean;
}

export function Tooltip({ dates, series, at, isToday, format, event, left, isLeft }: TooltipProps) {
  return (
    <div
      data-testid="tooltip"
      class={`${css.tooltip}${isLeft ? ` ${css.left}` : ""}`}
      style={{ left: `${left}px` }}
    >
      <strong>
        {day(dates[at] ?? "")}
        {isToday && ", so far"}
      </strong>
      {series.map((one, index) => (
        <span key={index} class={colourClass(one)}>
          <i />
          {one.dates?.[at] ? `${one.name}, ${day(one.dates[at], dates[at])}` : one.name}{" "}
          <b>{format(one.values[at] ?? null)}</b>
        </span>
      ))}
      {event && <em>{event}</em>}
    </div>
  );
}
