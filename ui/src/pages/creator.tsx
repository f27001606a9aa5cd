// One creator: what all its accounts gained together, and each of them.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { Controls } from "../components/controls.tsx";
import type { PageProps } from "../components/frame.tsx";
import { GainsCard } from "../components/gains.tsx";
import { HistoryCard } from "../components/history.tsx";
import { Picture, ProblemNotice } from "../components/parts.tsx";
import { RankedAccounts, RankedContent } from "../components/rankings.tsx";
import { days } from "../format.ts";
import { view, windowParameters } from "../state/view.ts";

export function CreatorPage({ id }: PageProps) {
  const { range, metric } = view.value;
  const window = windowParameters(range);
  const dependencies = [id, JSON.stringify(window)];
  const creator = useResource((signal) => unwrap(api.GET("/creators/{creator_id}", { params: { path: { creator_id: id } }, signal })), [id]);
  const totals = useResource((signal) => unwrap(api.GET("/creators/metrics", { params: { query: { ...window, creator_ids: [id] } }, signal })), dependencies);
  const history = useResource(
    (signal) => unwrap(api.GET("/creators/{creator_id}/analytics", { params: { path: { creator_id: id }, query: { ...window, values: "both" } }, signal })),
    dependencies,
  );
  const record = creator.data?.data;
  return (
    <>
      {creator.problem && <ProblemNotice problem={creator.problem} retry={creator.reload} />}
      <div class="page-head">
        {record && <Picture id={record.id} name={record.name} />}
        <div class="grow">
          <h1 dir="auto">{record?.name ?? "Creator"}</h1>
          <p class="quiet small">{totals.data && days(totals.data.meta.start_date, totals.data.meta.end_date)} · days in UTC</p>
        </div>
        <Controls />
      </div>
      <GainsCard id={id} resource={totals} />
      <HistoryCard resource={history} />
      <div class="columns">
        <RankedAccounts title="Accounts" query={{ ...window, creator_id: id, metric, limit: 50, include_all: true }} />
        <RankedContent title="Posts that gained most" query={{ ...window, creator_id: id, metric, limit: 10 }} />
      </div>
    </>
  );
}
