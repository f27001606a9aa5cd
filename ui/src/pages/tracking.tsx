// Tracking: is it up to date, what fails and why, which sources pause.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { Controls } from "../components/controls.tsx";
import { Facts } from "../components/facts.tsx";
import { Card, Count, Empty, Status } from "../components/parts.tsx";
import { Table, type Column } from "../components/table.tsx";
import { day, duration, exact, time } from "../format.ts";
import { linkTo, view, windowParameters } from "../state/view.ts";

async function fetchTracking(signal: AbortSignal) {
  return (await unwrap(api.GET("/tracking", { signal }))).data;
}

type Tracking = Awaited<ReturnType<typeof fetchTracking>>;
type Failure = Tracking["failures"][number];
type Source = Tracking["sources"][number];

const FAILURE_COLUMNS: readonly Column<Failure>[] = [
  { name: "Reason", render: ({ reason }) => <a href={linkTo("/accounts", { status: "failing" })}>{reason.replaceAll("_", " ")}</a> },
  { name: "Accounts", isNumber: true, render: ({ accounts }) => <Count value={accounts} /> },
  { name: "Videos", isNumber: true, render: ({ videos }) => <Count value={videos} /> },
];
const SOURCE_COLUMNS: readonly Column<Source>[] = [
  { name: "Source", render: ({ name }) => name },
  { name: "Platform", render: ({ platform }) => platform },
  { name: "Status", render: ({ status }) => <Status status={status} /> },
  { name: "Until", render: ({ paused_until }) => time(paused_until) },
  { name: "Why", render: ({ reason }) => reason ?? "–" },
];

export function TrackingPage() {
  const tracking = useResource(fetchTracking, []);
  return (
    <>
      <div class="page-head"><div class="grow"><h1>Tracking</h1><p class="quiet small">How current the numbers are</p></div><Controls /></div>
      <Card title="Now" resource={tracking} height={60}>
        {(data) => (
          <Facts facts={[
            ["Oldest due read waits", duration(data.lag_seconds)],
            ["Due", <Count value={data.due} />],
            ["Running", <Count value={data.in_flight} />],
            ["Succeeded in 24 h", <Count value={data.scrapes_24h.succeeded} />],
            ["Failed in 24 h", <Count value={data.scrapes_24h.failed} />],
          ]} />
        )}
      </Card>
      <div class="columns">
        <Card title="Accounts by status" resource={tracking} height={160}>
          {({ accounts }) => <Facts facts={Object.entries(accounts).map(([status, count]) => [status.replaceAll("_", " "), <a key={status} href={linkTo("/accounts", { status })}><Count value={count} /></a>])} />}
        </Card>
        <Card title="What is failing" resource={tracking} height={160}>
          {({ failures }) => failures.length === 0 ? <Empty>Nothing fails.</Empty> : <Table title="What is failing" columns={FAILURE_COLUMNS} rows={failures} rowKey={({ reason }) => reason} />}
        </Card>
        <Card title="Sources" resource={tracking} height={160}>
          {({ sources }) => sources.length === 0 ? <Empty>No source is configured.</Empty> : <Table title="Sources" columns={SOURCE_COLUMNS} rows={sources} rowKey={({ platform, name }) => `${platform}/${name}`} />}
        </Card>
      </div>
      <Coverage />
    </>
  );
}

/** One square a day: how much of what was expected was observed. */
function Coverage() {
  const query = windowParameters(view.value.range);
  const coverage = useResource((signal) => unwrap(api.GET("/tracking/coverage", { params: { query }, signal })), [JSON.stringify(query)]);
  return (
    <Card title="Observed per day (UTC)" resource={coverage} height={120}>
      {({ data }) => (
        <ol class="heat-map">
          {data.map(({ date, observed, expected }) => {
            const share = expected === 0 ? null : observed / expected;
            const label = `${day(date)}: ${exact(observed)} of ${exact(expected)}`;
            return <li key={date} title={label} aria-label={label} style={{ "--share": share ?? 0 }} class={share === null ? "none" : ""} />;
          })}
        </ol>
      )}
    </Card>
  );
}
