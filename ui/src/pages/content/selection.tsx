// Choosing posts of the table, to compare them or put them into a collection.

import { useState } from "preact/hooks";

import { CompareButton } from "../../components/compared.tsx";
import { marking, mayMark } from "../../components/marks.tsx";
import { selectColumn } from "../../components/select-column.tsx";
import { plural } from "../../format.ts";

interface Post {
  id: string;
  description: string | null;
}

/** A column of check boxes, and buttons for what is chosen of the rows. */
export function usePostSelection(rows: readonly Post[] = []) {
  const [selected, select] = useState<ReadonlySet<string>>(new Set());
  const ids = rows.map(({ id }) => id).filter((id) => selected.has(id));
  const nameOf = ({ description }: Post) => description || "post without a caption";
  const column = selectColumn({ rows, selected, select, nameOf });
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
