// What the posts of a collection earn, by account or creator.

import { useState } from "preact/hooks";

import { useResource } from "../../api/resource.ts";
import { ExportButton } from "../../components/export.tsx";
import { markChanges } from "../../components/marks.tsx";
import { Card, Count, Empty } from "../../components/parts.tsx";
import { type Column, CsvButton, Table } from "../../components/table.tsx";
import { exact, money, plural } from "../../format.ts";
import { fetchReportPayouts, type ReportSource } from "../../loads/collections.ts";
import { view, windowParameters } from "../../state/view.ts";

type Row = Awaited<ReturnType<typeof fetchReportPayouts>>["data"][number];
type Grouping = "account" | "creator";

function columnsBy(group: Grouping, currency: string): Column<Row>[] {
  const account: Column<Row> = {
    name: "Account",
    csv: (row) => row.account_username,
    render: (row) => (row.account_username === null ? "Without an account" : `@${row.account_username}`),
  };
  const creator: Column<Row> = {
    name: "Creator",
    csv: (row) => row.creator_name,
    render: (row) => <bdi>{row.creator_name ?? (group === "creator" ? "Without a creator" : "–")}</bdi>,
  };
  const count = (name: string, value: (row: Row) => number): Column<Row> => ({
    name,
    isNumber: true,
    csv: value,
    render: (row) => <Count value={value(row)} format={exact} />,
  });
  return [
    ...(group === "account" ? [account] : []),
    creator,
    count("Posts", (row) => row.videos),
    count("Paid posts", (row) => row.eligible_videos),
    count("Views", (row) => row.views),
    {
      name: "Amount",
      isNumber: true,
      csv: (row) => row.amount,
      render: (row) => money(row.amount, currency),
    },
    { name: "Currency", csv: () => currency },
  ];
}

interface Props {
  source: ReportSource;
  /** What counts: latest counters, or gains of the window. */
  count?: "lifetime" | "window" | undefined;
}

export function Payouts({ source, count }: Props) {
  const current = view.value;
  const [group, setGroup] = useState<Grouping>("account");
  const resource = useResource(
    (signal) => fetchReportPayouts(source, current, group, signal),
    [JSON.stringify([source, current.range]), group, markChanges.value],
    { isBelow: true },
  );
  const meta = resource.data?.meta;
  const columns = columnsBy(group, meta?.currency ?? "");
  const exported = "token" in source ? null : { ...source, ...windowParameters(current.range) };
  const basis = { lifetime: "all views so far", window: "views of this period" };
  return (
    <Card
      title="Payouts"
      note={
        meta &&
        [`${money(meta.total, meta.currency)} for ${plural(meta.video_count, "post")}`, count && basis[count]]
          .filter(Boolean)
          .join(" · ")
      }
      resource={resource}
      height={120}
      actions={
        <select
          aria-label="Payouts by"
          value={group}
          onChange={(event) => setGroup(event.currentTarget.value as Grouping)}
        >
          <option value="account">by account</option>
          <option value="creator">by creator</option>
        </select>
      }
      menu={
        exported ? (
          <>
            <ExportButton name="payouts" query={{ ...exported, group_by: group }} label="Save as CSV" />
            <ExportButton name="payout-videos" query={exported} label="Save posts as CSV" />
          </>
        ) : (
          <CsvButton title="Payouts" columns={columns} rows={resource.data?.data ?? []} />
        )
      }
    >
      {({ data }) =>
        data.length === 0 ? (
          <Empty>No post is in this collection.</Empty>
        ) : (
          <Table
            title="Payouts"
            columns={columns}
            rows={data}
            rowKey={({ account_id, creator_id }) => account_id ?? creator_id ?? ""}
          />
        )
      }
    </Card>
  );
}
