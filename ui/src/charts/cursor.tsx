// The day of a chart that is looked at, by pointer or keyboard, and its exact values.

import type { ComponentChildren, RefObject } from "preact";
import { useRef } from "preact/hooks";

import { day } from "../format.ts";
import * as css from "./chart.module.css";
import { colourClass, drawnOf, type Scale, type Series } from "./series.ts";

/** A position and its values, in words. */
export function describe(
  name: string,
  at: number,
  series: readonly Series[],
  format: (value: number | null) => string,
): string {
  const values = series.map(({ name, values, notes }) =>
    [name, format(values[at] ?? null), notes?.get(at)].filter(Boolean).join(" "),
  );
  return `${name}: ${values.join(", ")}`;
}

/** Two positions, in their order. */
export type Selection = readonly [from: number, to: number];

interface CursorProps {
  frame: RefObject<HTMLDivElement | null>;
  title: string;
  last: number;
  position: number | null;
  setPosition: (position: number | null) => void;
  /** From pixels to the nearest position, which may be outside. */
  positionAt: (pixels: number) => number;
  text: (position: number) => string;
  /** Where a selection that is being made begins. */
  anchor?: number | null;
  setAnchor?: (position: number | null) => void;
  /** Several positions were chosen: by dragging, or Shift with the arrow keys and then Enter. */
  onSelect?: (selection: Selection) => void;
  /** One position was chosen: by clicking, or Enter. */
  onPick?: ((position: number) => void) | undefined;
  children: ComponentChildren;
}

const STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageUp: -7,
  PageDown: 7,
};

/** Moves over the positions: by pointer, and as a slider by keyboard. */
export function Cursor(props: CursorProps) {
  const { frame, title, last, position, setPosition, positionAt, text, children } = props;
  const { anchor = null, setAnchor = () => {}, onSelect, onPick } = props;
  const isDragging = useRef(false);
  const clamp = (value: number) => Math.max(0, Math.min(last, value));
  const end = (at: number) => {
    setAnchor(null);
    if (anchor !== null && anchor !== at) onSelect?.([Math.min(anchor, at), Math.max(anchor, at)]);
    else onPick?.(at);
  };
  const at = (event: PointerEvent) =>
    clamp(positionAt(event.clientX - (frame.current?.getBoundingClientRect().left ?? 0)));
  // A finger looks at days; with a mouse or a pen they are chosen.
  const isPrecise = (event: PointerEvent) => event.pointerType !== "touch" && event.button === 0;
  const onPointerDown = (event: PointerEvent) => {
    setPosition(at(event));
    if (!isPrecise(event) || !(onSelect || onPick)) return;
    isDragging.current = true;
    setAnchor(at(event));
  };
  const onPointerUp = (event: PointerEvent) => {
    if (!isDragging.current) return;
    isDragging.current = false;
    end(at(event));
  };
  const onPointerLeave = (event: PointerEvent) => {
    isDragging.current = false;
    // A finger that is lifted leaves the values on screen.
    if (event.pointerType === "touch") return;
    setPosition(null);
    setAnchor(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { key, shiftKey } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Escape") {
      setPosition(null);
      return setAnchor(null);
    }
    if (key === "Enter" && position !== null) return end(position);
    const next =
      key === "Home" ? 0 : key === "End" ? last : key in STEPS ? (position ?? last) + stepOf(key) : null;
    if (next === null) return;
    event.preventDefault();
    if (onSelect) setAnchor(shiftKey ? (anchor ?? position ?? last) : null);
    setPosition(clamp(next));
  };
  // The first key shows the last day.
  const stepOf = (key: string) => (position === null ? 0 : (STEPS[key] ?? 0));
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
      onBlur={() => {
        setPosition(null);
        setAnchor(null);
      }}
      onPointerMove={(event) => setPosition(at(event))}
      onPointerDown={onPointerDown}
      onPointerUp={onPointerUp}
      onPointerLeave={onPointerLeave}
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
        const value = drawnOf(one)[at];
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
  /** Of the position. */
  name: string;
  /** The days of the chart, if it is of days. */
  dates?: readonly string[];
  series: readonly Series[];
  at: number;
  format: (value: number | null) => string;
  event?: string | undefined;
  /** Position in pixels, and whether the values stand left of it. */
  left: number;
  isLeft: boolean;
}

export function Tooltip({ name, dates, series, at, format, event, left, isLeft }: TooltipProps) {
  return (
    <div
      data-testid="tooltip"
      class={`${css.tooltip}${isLeft ? ` ${css.left}` : ""}`}
      style={{ left: `${left}px` }}
    >
      <strong>{name}</strong>
      {series.map((one, index) => (
        <span key={index} class={colourClass(one)}>
          <i />
          {one.dates?.[at] ? `${one.name}, ${day(one.dates[at], dates?.[at])}` : one.name}{" "}
          <b>{format(one.values[at] ?? null)}</b>
          {one.notes?.has(at) && <small>{one.notes.get(at)}</small>}
        </span>
      ))}
      {event && <em>{event}</em>}
    </div>
  );
}
