// The filters of a page. On narrow screens they are behind a button, which says how many are chosen.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { tagFilters, view } from "../state/view.ts";

interface Props {
  /** Those of the address that it has, besides tags. */
  names: readonly string[];
  /** What is in front of the button. */
  first?: ComponentChildren;
  children: ComponentChildren;
}

export function FilterBar({ names, first, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  const { filters } = view.value;
  const count = names.filter((name) => filters.has(name)).length + tagFilters(view.value).length;
  return (
    <div class={`controls filter-bar${isOpen ? "" : " folded"}`} role="group" aria-label="Filters">
      {first}
      <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters{count > 0 && ` · ${count}`}
      </button>
      {children}
    </div>
  );
}
