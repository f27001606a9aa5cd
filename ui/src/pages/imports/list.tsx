// The table of imports: what was loaded, what was refused, and what still runs.

import { useMemo } from "preact/hooks";

import { useAction } from "../../api/action.ts";
import { Count, ProblemNotice } from "../../components/parts.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { When } from "../../components/when.tsx";
import { exact } from "../../format.ts";
import { cancelImport, type Import, isUnfinished } from "../../loads/imports.ts";
import * as css from "../imports.module.css";
import { Refusals } from "./report.tsx";

const STATUSES: Readonly<Record<Import["status"], { text: string; tone: "" | "ok" | "bad" }>> = {
  queued: { text: "Waits for others", tone: "" },
  running: { text: "Running", tone: "" },
  succeeded: { text: "Done", tone: "ok" },
  failed: { text: "Failed", tone: "bad" },
  cancelled: { text: "Cancelled", tone: "" },
};

function Outcome({ of: { status, error, dry_run } }: { of: Import }) {
  const { text, tone } = STATUSES[status];
  return (
    <div class={css.outcome}>
      <span class={`status ${tone}`}>
        {text}
        {dry_run && <span class="quiet small"> preview</span>}
      </span>
      {error && <p class="small">{error}</p>}
    </div>
  );
}

function columnsFor(cancel: ((row: Import) => void) | null): Column<Import>[] {
  const count = (name: string, value: (row: Import) => number): Column<Import> => ({
    name,
    isNumber: true,
    render: (row) => <Count value={value(row)} format={exact} />,
  });
  return [
    { name: "File", render: ({ filename }) => <span dir="auto">{filename ?? "without a name"}</span> },
    { name: "Result", render: (row) => <Outcome of={row} /> },
    count("Rows", ({ rows_read }) => rows_read),
    count("Accounts", ({ accounts }) => accounts),
    count("Posts", ({ videos }) => videos),
    count("Observations", ({ snapshots_written }) => snapshots_written),
    { name: "Refused", render: (row) => <Refusals of={row} /> },
    { name: "When", render: ({ created_at }) => <When value={created_at} /> },
    {
      name: "Action",
      isControl: true,
      render: (row) =>
        cancel &&
        isUnfinished(row) && (
          <button type="button" class="small" onClick={() => cancel(row)}>
            Cancel
          </button>
        ),
    },
  ];
}

interface Props {
  rows: readonly Import[];
  mayCancel: boolean;
  onCancelled: () => void;
}

export function ImportTable({ rows, mayCancel, onCancelled }: Props) {
  const cancel = useAction(async (signal, { id }: Import) => {
    await cancelImport(id, signal);
    onCancelled();
  });
  const columns = useMemo(() => columnsFor(mayCancel ? (row) => void cancel.run(row) : null), [mayCancel]);
  return (
    <>
      <ProblemNotice of={cancel} />
      <Table title="Imports" columns={columns} rows={rows} rowKey={({ id }) => id} />
    </>
  );
}
