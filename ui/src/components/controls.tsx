// What is shown of every page's numbers: range, platform, comparison. All of it is in the address.

import { useEffect, useState } from "preact/hooks";

import {
  navigate,
  PERIODS,
  PLATFORMS,
  type Platform,
  type Range,
  rangeDays,
  utcToday,
  view,
} from "../state/view.ts";

const PERIOD_NAMES: Readonly<Record<Range["period"], string>> = {
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
  custom: "Custom…",
};
export const PLATFORM_NAMES: Readonly<Record<Platform, string>> = {
  instagram: "Instagram",
  tiktok: "TikTok",
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
  useEffect(() => setCustom(range.period === "custom"), [range.period]);
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
      {isCustom ? (
        <CustomRange key={`${range.start}/${range.end}`} range={range} />
      ) : (
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
        <label class="check small">
          <input
            type="checkbox"
            checked={compare}
            onChange={(event) => navigate({ compare: event.currentTarget.checked })}
          />
          compare
        </label>
      )}
    </div>
  );
}

/** The longest window that the API takes, in days. */
const MAX_DAYS = 731;

function CustomRange({ range }: { range: Range }) {
  const [start, setStart] = useState(range.start ?? "");
  const [end, setEnd] = useState(range.end ?? "");
  const custom: Range = { period: "custom", start, end, includeToday: false };
  const today = utcToday();
  const isTooLong = rangeDays(custom) > MAX_DAYS;
  const apply = (event: Event) => {
    event.preventDefault();
    if (start && end && start <= end && end <= today && !isTooLong) navigate({ range: custom });
  };
  return (
    <form class="controls" onSubmit={apply}>
      <input
        type="date"
        aria-label="First day (UTC)"
        required
        max={today}
        value={start}
        onInput={(event) => setStart(event.currentTarget.value)}
      />
      <span class="quiet" aria-hidden="true">
        –
      </span>
      <input
        type="date"
        aria-label="Last day (UTC)"
        required
        min={start}
        max={today}
        value={end}
        onInput={(event) => setEnd(event.currentTarget.value)}
      />
      <button type="submit" disabled={isTooLong}>
        Show
      </button>
      {isTooLong && (
        <span class="small" role="status">
          At most {MAX_DAYS} days
        </span>
      )}
    </form>
  );
}
