// All rows that match, as the API's CSV.

import { useAction } from "../api/action.ts";
import { fetchExport } from "../api/client.ts";
import { saveFile } from "../csv.ts";

interface Props {
  /** Of the file. */
  name: "accounts" | "content" | "creators" | "daily" | "payouts" | "payout-videos";
  /** Filters and window. */
  query: Readonly<Record<string, unknown>>;
  label?: string;
}

export function ExportButton({ name, query, label = "Save all as CSV" }: Props) {
  const save = useAction(async (signal) => saveFile(name, await fetchExport(name, query, signal)));
  return (
    <>
      <button
        type="button"
        class="plain small"
        title="Save all rows that match"
        disabled={save.isRunning}
        onClick={() => void save.run()}
      >
        {save.isRunning ? "Saving…" : label}
      </button>
      {save.problem && (
        <span class="small danger-text" role="alert">
          {save.problem.message}
        </span>
      )}
    </>
  );
}
