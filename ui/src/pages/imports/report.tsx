// What a file contains, or what became of it.

import { Facts } from "../../components/facts.tsx";
import { Count } from "../../components/parts.tsx";
import * as tableCss from "../../components/table.module.css";
import { exact, plural } from "../../format.ts";
import type { Import } from "../../loads/imports.ts";
import * as css from "../imports.module.css";

/** The refused rows, closed at first. */
export function Refusals({ of: { refused, refusals } }: { of: Import }) {
  if (refused === 0) return <>0</>;
  return (
    <details class={css.refusals}>
      <summary>{exact(refused)}</summary>
      <ul class="small">
        {refusals.map(({ line, reason }) => (
          <li key={line}>
            <b>Line {exact(line)}</b> {reason}
          </li>
        ))}
      </ul>
      {refused > refusals.length && <p class="small quiet">These are the first {refusals.length}.</p>}
    </details>
  );
}

export function Report({ of: report }: { of: Import }) {
  const { format, assumed, rows_read, accounts, videos, snapshots_written, dry_run, sample } = report;
  return (
    <div class={css.report}>
      <Facts
        facts={[
          ["Format", format ?? "–"],
          ["Rows", <Count value={rows_read} format={exact} />],
          ["Accounts", <Count value={accounts} format={exact} />],
          ["Posts", <Count value={videos} format={exact} />],
          [
            dry_run ? "Observations in it" : "New observations",
            <Count value={snapshots_written} format={exact} />,
          ],
          ["Refused rows", <Refusals of={report} />],
        ]}
      />
      {assumed.length > 0 && (
        <div>
          <h3>Assumed</h3>
          <ul class="small">
            {assumed.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        </div>
      )}
      {sample && sample.length > 0 && <Sample rows={sample} />}
    </div>
  );
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The first rows as they would be stored, with the columns that any of them has. */
function Sample({ rows }: { rows: readonly Readonly<Record<string, unknown>>[] }) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((column) =>
    rows.some((row) => row[column] !== null),
  );
  return (
    <div>
      <h3>The first {plural(rows.length, "row")} as they would be stored</h3>
      <div class={tableCss.tableFrame} tabIndex={0} role="region" aria-label="First rows">
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {columns.map((column) => (
                  <td key={column} class={css.cell} title={cellText(row[column])}>
                    {cellText(row[column])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
