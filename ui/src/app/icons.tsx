// Icons: strokes in the colour of the text beside them.

import * as css from "./frame.module.css";

const PATHS = {
  overview: "M2 11l3.5-4 3 2.5L14 3M2 14h12",
  content: "M2.5 3.5h11v9h-11zM6.75 6v4l3.5-2z",
  accounts:
    "M8 8A2.75 2.75 0 1 0 8 2.5 2.75 2.75 0 0 0 8 8zM2.75 13.5C3.25 11 5.25 9.75 8 9.75S12.75 11 13.25 13.5",
  creators:
    "M6 7.5A2.25 2.25 0 1 0 6 3 2.25 2.25 0 0 0 6 7.5zM1.5 13C1.8 10.7 3.5 9.5 6 9.5S10.2 10.7 10.5 13M10.5 3.3A2.25 2.25 0 0 1 10.5 7.3M12 9.8C13.4 10.3 14.3 11.4 14.5 13",
  collections: "M2.5 6.5h11v7h-11zM4 4.25h8M5.5 2h5",
  events:
    "M8 14.5a1.5 1.5 0 0 0 1.5-1.5h-3A1.5 1.5 0 0 0 8 14.5zM3 11.5h10c-1-1-1.5-2-1.5-4.5a3.5 3.5 0 0 0-7 0C4.5 9.5 4 10.5 3 11.5z",
  tracking: "M1.5 8h3l2-5 3 10 2-5h3",
  imports: "M8 2v8M5 7.5L8 10.5l3-3M2.5 11v2.5h11V11",
  api: "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7L14 14",
  exit: "M6 2.5H3v11h3M7 8h6.5M11 5.5L13.5 8 11 10.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class={css.icon}
      width="16"
      height="16"
      viewBox="0 0 16 16"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The sign of the tide: a line that rises over a mark. */
export function Mark() {
  return (
    <svg
      width="20"
      height="20"
      viewBox="0 0 20 20"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
    >
      <path d="M1 13c3 0 3-4 6-4s3 4 6 4 3-4 6-4" />
      <path d="M3 5h14" opacity="0.45" />
    </svg>
  );
}
