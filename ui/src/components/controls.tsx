// What is shown of every page's numbers: range, platform, comparison. All of it is in the address.

import { useLayoutEffect, useState } from "preact/hooks";

import { mayHaveToday, PERIODS, type Range } from "../state/range.ts";
import { COMPARISONS, navigate, PLATFORMS, type Platform, view } from "../state/view.ts";
import { DayRange } from "./day-range.tsx";

const PERIOD_NAMES: Readonly<Record<Range["period"], string>> = {
  "7d": "7 days",
  "28d": "28 days",
  "30d": "30 days",
  "90d": "90 days",
  this_week: "This week",
  last_week: "Last week",
  this_month: "This month",
  last_month: "Last month",
  this_quarter: "This quarter",
  last_quarter: "Last quarter",
  this_year: "This year",
  last_year: "Last year",
  "731d": "Two years",
  custom: "Custom…",
};
export const PLATFORM_NAMES: Readonly<Record<Platform, string>> = {
  instagram: "Instagram",
  tiktok: "TikTok",
};
/** What a username stands behind. */
export const PROFILE_LINKS: Readonly<Record<Platform, string>> = {
  instagram: "https://www.instagram.com/",
  tiktok: "https://www.tiktok.com/@",
};

interface Props {
  /** Whether the page shows anything compared with the period before. */
  hasComparison?: boolean;
  /** Whether it shows records of more than one platform. */
  hasPlatform?: boolean;
}

export function Controls({ hasComparison = true, hasPlatform = true }: Props) {
  const { range, platform, compare } = view.value;
  const [isCustom, setCustom] = useState(range.period === "custom");
  useLayoutEffect(() => setCustom(range.period === "custom"), [range.period]);
  const pick = (period: Range["period"]) => {
    setCustom(period === "custom");
    if (period !== "custom") navigate({ range: { ...range, period, start: null, end: null } });
  };
  return (
    <div class="controls">
      <select
        aria-label="Range"
        value={isCustom ? "custom" : range.period}
        onChange={(event) => pick(event.currentTarget.value as Range["period"])}
      >
        {[...PERIODS, "custom" as const].map((period) => (
          <option key={period} value={period}>
            {PERIOD_NAMES[period]}
          </option>
        ))}
      </select>
      {isCustom && <DayRange range={range} />}
      {!isCustom && mayHaveToday(range) && (
        <label class="check small">
          <input
            type="checkbox"
            checked={range.includeToday}
            onChange={(event) => navigate({ range: { ...range, includeToday: event.currentTarget.checked } })}
          />
          with today
        </label>
      )}
      {hasPlatform && (
        <select
          aria-label="Platform"
          value={platform ?? ""}
          onChange={(event) => navigate({ platform: (event.currentTarget.value || null) as Platform | null })}
        >
          <option value="">All platforms</option>
          {PLATFORMS.map((platform) => (
            <option key={platform} value={platform}>
              {PLATFORM_NAMES[platform]}
            </option>
          ))}
        </select>
      )}
      {hasComparison && (
        <select
          aria-label="Compare with"
          value={compare ?? "none"}
          onChange={({ currentTarget: { value } }) =>
            navigate({ compare: COMPARISONS.find((comparison) => comparison === value) ?? null })
          }
        >
          <option value="previous">vs before</option>
          <option value="year">vs last year</option>
          <option value="none">alone</option>
        </select>
      )}
    </div>
  );
}
