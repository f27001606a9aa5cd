// What a line chart shows.

import * as css from "./chart.module.css";

/** A value for each day; null where nothing is known. */
export type Values = readonly (number | null)[];
/** From a value or a position to pixels. */
export type Scale = (value: number) => number;

/** Numbers of the series' colours in the style sheet. */
const COLOURS = { 1: css.series1, 2: css.series2, 3: css.series3, 4: css.series4, 5: css.series5 };

export interface Series {
  name: string;
  values: Values;
  colour: keyof typeof COLOURS;
  isPrevious?: boolean;
  /** The days of the values, if they are not those of the chart. */
  dates?: readonly string[];
  /** What is drawn instead of the values: a gain of several days as a step over these. */
  steps?: Values;
  /** What is to be known of single values, by position. */
  notes?: ReadonlyMap<number, string>;
}

export function drawnOf({ steps, values }: Series): Values {
  return steps ?? values;
}

export function colourClass({ colour, isPrevious }: Series): string {
  return `${COLOURS[colour]}${isPrevious ? ` ${css.previous}` : ""}`;
}
