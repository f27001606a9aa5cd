// What is shown of every page's numbers: range, platform, comparison. All of it is in the address.

import { useState } from "preact/hooks";

import { PERIODS, PLATFORMS, navigate, view, type Platform, type Range } from "../state/view.ts";

const PERIOD_NAMES: Readonly<Record<Range["period"], string>> = {
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
  custom: "Custom…",
};
export const PLATFORM_NAMES: Readonly<Record<Platform, string>> = { instagram: "Instagram", tiktok: "TikTok" };

export function Controls() {
  const { range, platform, compare } = view.value;
  const [isCustom, setCustom] = useState(range.period === "custom");
  const pick = (period: Range["period"]) => {
    setCustom(period === "custom");
    if (period !== "custom") navigate({ range: { ...range, period, start: null, end: null } });
  };
  return (
    <div class="controls">
      <select aria-label="Range" value={isCustom ? "custom" : range.period} onChange={(event) => pick(event.currentTarget.value as Range["period"])}>
        {[...PERIODS, "custom" as const].map((period) => <option key={period} value={period}>{PERIOD_NAMES[period]}</option>)}
      </select>
      {isCustom ? <CustomRange range={range} /> : (
        <label class="small">
          <input type="checkbox" checked={range.includeToday} onChange={(event) => navigate({ range: { ...range, includeToday: event.currentTarget.checked } })} />
          {" "}with today
        </label>
      )}
      <select aria-label="Platform" value={platform ?? ""} onChange={(event) => navigate({ platform: (event.currentTarget.value || null) as Platform | null })}>
        <option value="">All platforms</option>
        {PLATFORMS.map((platform) => <option key={platform} value={platform}>{PLATFORM_NAMES[platform]}</option>)}
      </select>
      <label class="small">
        <input type="checkbox" checked={compare} onChange={(event) => navigate({ compare: event.currentTarget.checked })} />
        {" "}compare
      </label>
    </div>
  );
}

function CustomRange({ range }: { range: Range }) {
  const [start, setStart] = useState(range.start ?? "");
  const [end, setEnd] = useState(range.end ?? "");
  const apply = (event: Event) => {
    event.preventDefault();
    if (start && end && start <= end) navigate({ range: { period: "custom", start, end, includeToday: true } });
  };
  return (
    <form class="controls" onSubmit={apply}>
      <input type="date" aria-label="First day (UTC)" required value={start} onInput={(event) => setStart(event.currentTarget.value)} />
      <input type="date" aria-label="Last day (UTC)" required min={start} value={end} onInput={(event) => setEnd(event.currentTarget.value)} />
      <button type="submit">Show</button>
    </form>
  );
}
