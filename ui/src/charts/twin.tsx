// The values of a chart as a table, for those who do not see it or want the digits.

import { useState } from "preact/hooks";

import { CsvButton, type Column } from "../components/table.tsx";
import { day } from "../format.ts";
import type { Series } from "./series.ts";

interface Props {
  title: string;
  dates: readonly string[];
  series: readonly Series[];
  format: (value: number | null) => string;
}

/** Its rows exist only while it is open: they may be hundreds. */
export function ChartTable({ title, dates, series, format }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Table</summary>
      {isOpen && <Rows title={title} dates={dates} series={series} format={format} />}
    </details>
  );
}

function Rows({ title, dates, series, format }: Props) {
  const positions = dates.map((_, position) => position);
  const columns: Column<number>[] = [
    { name: "Day (UTC)", csv: (position) => dates[position], render: (position) => day(dates[position] ?? "") },
    ...series.map(({ name, values }): Column<number> => ({
      name, csv: (position) => values[position], render: (position) => format(values[position] ?? null),
    })),
  ];
  return (
    <>
      <CsvButton title={title} columns={columns} rows={positions} />
      <div class="table-frame" tabIndex={0} role="region" aria-label={`${title}: table`}>
        <table>
          <caption>{title}</caption>
          <thead>
            <tr>{columns.map(({ name }, number) => <th key={name} scope="col" class={number > 0 ? "number" : ""}>{name}</th>)}</tr>
          </thead>
          <tbody>
            {positions.map((position) => (
              <tr key={position}>
                {columns.map(({ name, render }, number) => number === 0 ? <th key={name} scope="row">{render?.(position)}</th> : <td key={name} class="number">{render?.(position)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
