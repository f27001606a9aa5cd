// Creators by what their accounts gained, and a comparison of up to five.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { LineChart } from "../charts/line.tsx";
import { Controls } from "../components/controls.tsx";
import { Card, Change, Count, Empty, Entity } from "../components/parts.tsx";
import { CsvButton, Table, type Column } from "../components/table.tsx";
import { days, gain, rate } from "../format.ts";
import { linkTo, navigate, view, windowParameters, type View } from "../state/view.ts";

const MAX_COMPARED = 5;
/** The longest ranking of creators that the API returns. */
const MAX_RANKED = 25;
const COLOURS = [1, 2, 3, 4, 5] as const;

async function fetchCreators({ range, platform, metric }: View, signal: AbortSignal) {
  const query = { ...windowParameters(range), ...(platform ? { platform } : {}), metric, limit: MAX_RANKED };
  return unwrap(api.GET("/creators/top", { params: { query }, signal }));
}

type Row = Awaited<ReturnType<typeof fetchCreators>>["data"][number];

function comparedIds({ filters }: View): string[] {
  return (filters.get("creators") ?? "").split(",").filter(Boolean).slice(0, MAX_COMPARED);
}

function toggleCompared(id: string): void {
  const ids = comparedIds(view.value);
  const next = ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id];
  const filters = new Map(view.value.filters);
  if (next.length > 0) filters.set("creators", next.join(","));
  else filters.delete("creators");
  navigate({ filters }, { replace: true });
}

function columns(compared: readonly string[]): Column<Row>[] {
  const metric = view.value.metric;
  return [
    {
      name: "Compare",
      render: ({ id, name }) => <input type="checkbox" aria-label={`Compare ${name}`} checked={compared.includes(id)} disabled={!compared.includes(id) && compared.length === MAX_COMPARED} onChange={() => toggleCompared(id)} />,
    },
    { name: "Creator", csv: (row) => row.name, render: (row) => <Entity id={row.id} href={linkTo(`/creators/${row.id}`)} name={row.name} /> },
    { name: "Accounts", isNumber: true, csv: (row) => row.account_count, render: (row) => row.account_count },
    { name: "Followers", isNumber: true, csv: (row) => row.follower_count, render: (row) => <Count value={row.follower_count} /> },
    { name: `Gained ${metric}`, isNumber: true, csv: (row) => row.metrics[metric], render: (row) => <Count value={row.metrics[metric]} format={gain} /> },
    { name: "Change", isNumber: true, csv: (row) => row.change_percent, render: (row) => <Change percent={row.change_percent} /> },
    { name: "Engagement rate", isNumber: true, csv: (row) => row.metrics.engagement_rate, render: (row) => rate(row.metrics.engagement_rate) },
  ];
}

export function CreatorsPage() {
  const current = view.value;
  const dependencies = [JSON.stringify([current.range, current.platform, current.metric])];
  const ranking = useResource((signal) => fetchCreators(current, signal), dependencies);
  const compared = comparedIds(current);
  const shown = columns(compared);
  const meta = ranking.data?.meta;
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Creators</h1>
          <p class="quiet small">{meta ? `${days(meta.start_date, meta.end_date)} · days in UTC` : "\u00a0"}</p>
        </div>
        <Controls />
      </div>
      {compared.length > 0 && <Comparison ids={compared} names={new Map(ranking.data?.data.map(({ id, name }) => [id, name]))} />}
      <Card title="Creators" resource={ranking} height={600} actions={<CsvButton title="Creators" columns={shown} rows={ranking.data?.data ?? []} />}>
        {({ data }) => data.length === 0 ? <Empty>No creators yet. A creator groups accounts of one person; link them on an account's page.</Empty> : <Table title="Creators" columns={shown} rows={data} rowKey={(row) => row.id} />}
      </Card>
    </>
  );
}

function Comparison({ ids, names }: { ids: readonly string[]; names: ReadonlyMap<string, string> }) {
  const { range, metric } = view.value;
  const query = { ...windowParameters(range), creator_ids: [...ids], metric };
  const series = useResource((signal) => unwrap(api.GET("/creators/timeseries", { params: { query }, signal })), [JSON.stringify(query)]);
  return (
    <Card title={`Compared: ${metric} per day`} resource={series} height={300}>
      {({ data, meta }) => (
        <LineChart title={`${metric} per day by creator`} dates={meta.dates} today={meta.dates.findIndex((date) => date > meta.complete_through)}
          series={ids.flatMap((id, position) => (data[id] ? [{ name: names.get(id) ?? "Creator", values: data[id], colour: COLOURS[position] ?? 1 }] : []))} />
      )}
    </Card>
  );
}
