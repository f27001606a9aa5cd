// Choosing posts of the table, to compare them or put them into a collection.

import { useState } from "preact/hooks";

import { CompareButton } from "../../components/compared.tsx";
import { marking, mayMark } from "../../components/marks.tsx";
import * as css from "../../components/table.module.css";
import type { Column } from "../../components/table.tsx";
import { plural } from "../../format.ts";

interface Post {
  id: string;
  description: string | null;
}

/** A column of check boxes, and buttons for what is chosen of the rows. */
export function usePostSelection(rows: readonly Post[] = []) {
  const [selected, select] = useState<ReadonlySet<string>>(new Set());
  const ids = rows.map(({ id }) => id).filter((id) => selected.has(id));
  const isAll = rows.length > 0 && ids.length === rows.length;
  const column: Column<Post> = {
    name: "Select",
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
    render: ({ id, description }) => (
      <label class={css.target}>
        <input
          type="checkbox"
          aria-label={`Select ${description || "post without a caption"}`}
          checked={selected.has(id)}
          onChange={() =>
            select(
              selected.has(id)
                ? new Set([...selected].filter((one) => one !== id))
                : new Set([...selected, id]),
            )
          }
        />
      </label>
    ),
  };
  const action = ids.length > 0 && (
    <>
      <CompareButton kind="posts" ids={ids} />
      {mayMark.value && (
        <button type="button" onClick={() => (marking.value = { ids, name: plural(ids.length, "post") })}>
          Add {ids.length} to a collection…
        </button>
      )}
    </>
  );
  return { columns: [column], action };
}
