// What a line chart shows.

/** A value for each day; null where nothing is known. */
export type Values = readonly (number | null)[];
/** From a value or a position to pixels. */
export type Scale = (value: number) => number;

export interface Series {
  name: string;
  values: Values;
  /** Number of the series' colour in the style sheet. */
  colour: 1 | 2 | 3 | 4 | 5;
  isPrevious?: boolean;
  /** The days of the values, if they are not those of the chart. */
  dates?: readonly string[];
}
