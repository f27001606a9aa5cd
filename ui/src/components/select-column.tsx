// Choosing rows of a table by check boxes.

import * as css from "./table.module.css";
import type { Column } from "./table.tsx";

interface Props<Row> {
  rows: readonly Row[];
  selected: ReadonlySet<string>;
  select: (ids: ReadonlySet<string>) => void;
  nameOf: (row: Row) => string;
}

export function selectColumn<Row extends { id: string }>({
  rows,
  selected,
  select,
  nameOf,
}: Props<Row>): Column<Row> {
  const isAll = rows.length > 0 && rows.every(({ id }) => selected.has(id));
  return {
    name: "Select",
    isControl: true,
    heading: (
      <label class={css.target}>
        <input
          type="checkbox"
          aria-label="Select all that are shown"
          checked={isAll}
          onChange={() => select(new Set(isAll ? [] : rows.map(({ id }) => id)))}
        />
      </label>
    ),
    render: (row) => (
      <label class={css.target}>
        <input
          type="checkbox"
          aria-label={`Select ${nameOf(row)}`}
          checked={selected.has(row.id)}
          onChange={() => select(toggled(selected, row.id))}
        />
      </label>
    ),
  };
}

function toggled(selected: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return selected.has(id) ? new Set([...selected].filter((one) => one !== id)) : new Set([...selected, id]);
}
