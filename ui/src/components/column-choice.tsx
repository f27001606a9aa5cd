// Which columns of a table are shown: a person's own choice, which the browser remembers for each table.

import { useState } from "preact/hooks";

import { Menu } from "./menu.tsx";
import type { Column } from "./table.tsx";

/** Columns that may be hidden: all that have a name above them, except the one that says what a row is. */
function choosable<Row>(columns: readonly Column<Row>[]): string[] {
  const named = columns.filter(({ render, isControl }) => render && !isControl);
  return named.slice(1).map(({ name }) => name);
}

function storageKey(table: string): string {
  return `tidemark.hidden-columns.${table}`;
}

function readHidden(table: string): string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey(table)) ?? "[]");
    return Array.isArray(stored) ? stored.filter((name) => typeof name === "string") : [];
  } catch {
    return [];
  }
}

/** The columns that are shown, of those that a table has, and the control that chooses them. */
export function useColumnChoice<Row>(table: string, columns: readonly Column<Row>[]) {
  const [hidden, setHidden] = useState(() => readHidden(table));
  const names = choosable(columns);
  const isHidden = (name: string) => names.includes(name) && hidden.includes(name);
  const toggle = (name: string) => {
    const next = hidden.includes(name) ? hidden.filter((other) => other !== name) : [...hidden, name];
    localStorage.setItem(storageKey(table), JSON.stringify(next));
    setHidden(next);
  };
  const control = (
    <Menu label="Columns" text="Columns">
      {names.map((name) => (
        <label key={name} class="check">
          <input type="checkbox" checked={!isHidden(name)} onChange={() => toggle(name)} />
          {name}
        </label>
      ))}
    </Menu>
  );
  return { shown: columns.filter(({ name }) => !isHidden(name)), hidden, control };
}
