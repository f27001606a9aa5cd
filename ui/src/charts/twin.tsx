// The values of a chart as a table, for those who do not see it or want the digits.

import { useState } from "preact/hooks";
import * as tableCss from "../components/table.module.css";
import { type Column, CsvButton } from "../components/table.tsx";
import * as chartCss from "./chart.module.css";
import type { Series } from "./series.ts";

interface Props {
  title: string;
  /** What a position is, as the first column's name. */
  heading: string;
  positions: readonly string[];
  /** A position as text. */
  name: (position: string) => string;
  series: readonly Series[];
  format: (value: number | null) => string;
}

/** Its rows exist only while it is open: they may be hundreds. */
export function ChartTable(props: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class={chartCss.chartTable} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Table</summary>
      {isOpen && <Rows {...props} />}
    </details>
  );
}

function Rows({ title, heading, positions, name: nameOf, series, format }: Props) {
  const rows = positions.map((_, row) => row);
  const columns: Column<number>[] = [
    { name: heading, csv: (row) => positions[row], render: (row) => nameOf(positions[row] ?? "") },
    ...series.map(
      ({ name, values }): Column<number> => ({
        name,
        csv: (row) => values[row],
        render: (row) => format(values[row] ?? null),
      }),
    ),
  ];
  return (
    <>
      <CsvButton title={title} columns={columns} rows={rows} />
      <div class={tableCss.tableFrame} tabIndex={0} role="region" aria-label={`${title}: table`}>
        <table>
          <caption>{title}</caption>
          <thead>
            <tr>
              {columns.map(({ name }, number) => (
                <th key={name} scope="col" class={number > 0 ? "number" : ""}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row}>
                {columns.map(({ name, render }, number) =>
                  number === 0 ? (
                    <th key={name} scope="row">
                      {render?.(row)}
                    </th>
                  ) : (
                    <td key={name} class="number">
                      {render?.(row)}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
