// What a gain covers: a post that is not read every day has nothing on some days, and then the gain of all of them.

import type { Values } from "../../charts/series.ts";
import { day } from "../../format.ts";

const DAY_MS = 86_400_000;

interface GainDay {
  date: string;
  /** Day of the observation before; null without one, and on days without an observation. */
  since?: string | null;
}

/** What is drawn of gains: those of several days spread over these, and what is to be known of them. */
export function spreadGains(
  days: readonly GainDay[],
  gains: Values,
): { steps: Values; notes: ReadonlyMap<number, string> } | null {
  const steps = [...gains];
  const notes = new Map<number, string>();
  for (const [position, { date, since }] of days.entries()) {
    const gain = gains[position] ?? null;
    const covered = since ? Math.round((Date.parse(date) - Date.parse(since)) / DAY_MS) : 1;
    if (gain === null || covered <= 1) continue;
    for (let at = Math.max(0, position - covered + 1); at <= position; at++) steps[at] = gain / covered;
    notes.set(position, `since ${day(since ?? "", date)}`);
  }
  return notes.size > 0 ? { steps, notes } : null;
}
