// What the posts of an account usually have at an age.

import { useResource } from "../../api/resource.ts";
import type { components } from "../../api/schema.d.ts";
import { Card, Count } from "../../components/parts.tsx";
import { type Column, CsvButton, Table } from "../../components/table.tsx";
import { rate } from "../../format.ts";
import { fetchBenchmarks } from "../../loads/records.ts";

type Benchmark = components["schemas"]["Benchmark"];

const HEIGHT = 220;

const COLUMNS: readonly Column<Benchmark>[] = [
  { name: "Age in days", csv: ({ age_days }) => age_days, render: ({ age_days }) => age_days },
  {
    name: "Views",
    isNumber: true,
    csv: ({ views }) => views.p50,
    render: ({ views }) => <Count value={views.p50} />,
  },
  { name: "Lowest tenth", csv: ({ views }) => views.p10 },
  { name: "Highest tenth", csv: ({ views }) => views.p90 },
  {
    name: "Four of five",
    isNumber: true,
    render: ({ views: { p10, p90 } }) =>
      p10 === null ? (
        "–"
      ) : (
        <span class="nowrap">
          <Count value={p10} /> – <Count value={p90} />
        </span>
      ),
  },
  { name: "Engagement", csv: ({ engagement }) => engagement.p50 },
  {
    name: "Rate",
    isNumber: true,
    csv: ({ engagement_rate }) => engagement_rate.p50,
    render: ({ engagement_rate }) => rate(engagement_rate.p50),
  },
  {
    name: "Posts",
    isNumber: true,
    csv: ({ sample }) => sample,
    render: ({ sample }) => <Count value={sample} />,
  },
];

export function Benchmarks({ account_id }: { account_id: string }) {
  const title = "What its posts usually reach";
  const resource = useResource((signal) => fetchBenchmarks(account_id, signal), [account_id], {
    isBelow: true,
  });
  return (
    <Card
      title={title}
      note="medians of its last posts"
      resource={resource}
      height={HEIGHT}
      menu={<CsvButton title={title} columns={COLUMNS} rows={resource.data?.data ?? []} />}
    >
      {({ data }) => (
        <Table title={title} columns={COLUMNS} rows={data} rowKey={({ age_days }) => String(age_days)} />
      )}
    </Card>
  );
}
