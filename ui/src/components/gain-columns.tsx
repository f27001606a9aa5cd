// What the tables of accounts and of creators have in common.

import type { Page, PagedResource } from "../api/pages.ts";
import { Sparkline } from "../charts/line.tsx";
import { exact, gain, rate } from "../format.ts";
import type { GainColumns, GainPage, Gains } from "../loads/gain-rows.ts";
import type { RecordMetric } from "../state/metrics.ts";
import { Change, Count, ProblemNotice } from "./parts.tsx";
import * as css from "./table.module.css";
import type { Column } from "./table.tsx";

export interface Shown {
  /** What the rows were loaded as a ranking by. */
  ranked: RecordMetric | undefined;
  hasChange: boolean;
  canRank: boolean;
}

/** A gain, and how it changed if the rows are ranked by it. */
export function gainColumn<Row extends GainColumns>(
  name: string,
  metric: keyof Gains,
  { ranked, hasChange, canRank }: Shown,
): Column<Row>[] {
  const isRanked = ranked === metric && hasChange;
  const column: Column<Row> = {
    name,
    isNumber: true,
    csv: (row) => row.gains?.[metric],
    ...(canRank ? { sort: metric } : {}),
    render: (row) => (
      <span class={css.stacked}>
        <Count value={row.gains?.[metric]} format={gain} />
        {isRanked && (
          <Change percent={row.change_percent} current={row.gains?.[metric]} previous={row.previous} />
        )}
      </span>
    ),
  };
  return isRanked
    ? [column, { name: `Change of ${name.toLowerCase()}`, csv: (row) => row.change_percent }]
    : [column];
}

export function daysColumn<Row extends GainColumns>({ ranked }: Shown): Column<Row> {
  const base = ranked === "followers" ? "least" : "zero";
  return {
    name: "Per day",
    render: ({ series, today }) =>
      series && <Sparkline values={series} today={today} label="Per day" base={base} />,
  };
}

/** Only rankings have it. */
export const RATE: Column<GainColumns> = {
  name: "Rate",
  sort: "engagement_rate",
  isNumber: true,
  csv: (row) => row.engagement_rate,
  render: (row) => <span title={String(row.engagement_rate ?? "–")}>{rate(row.engagement_rate)}</span>,
};

/** Why the rows are shown without their gains. */
export function GainsProblem({ pages }: { pages: PagedResource<GainPage<unknown, unknown>> }) {
  return <ProblemNotice of={{ problem: pages.data?.page.problem ?? undefined, retry: pages.reload }} />;
}

interface MoreProps {
  pages: PagedResource<Page<unknown>>;
  /** How many rows there are in all, if that is known. */
  total?: number | null;
}

/** Below a list that is cut: how many of all it shows, and a button for more. */
export function MoreButton({ pages: { data, hasMore, loadMore, status }, total = null }: MoreProps) {
  const isLoading = status === "loading";
  return hasMore ? (
    <p class="more">
      <button type="button" onClick={loadMore} disabled={isLoading}>
        {isLoading ? "Loading…" : "Show more"}
      </button>
      {data && total !== null && (
        <span class="quiet small">
          {exact(data.rows.length)} of {exact(total)}
        </span>
      )}
    </p>
  ) : null;
}
