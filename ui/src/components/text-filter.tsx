// A filter by a part of a text, in the address as `q`.

import { useEffect, useState } from "preact/hooks";

import { setFilters, view } from "../state/view.ts";
import { useDebounced } from "./debounce.ts";

/** Taken when typing pauses. */
export function TextFilter({ label, placeholder }: { label: string; placeholder: string }) {
  const value = view.value.filters.get("q") ?? "";
  const [text, setText] = useState(value);
  const settled = useDebounced(text.trim());
  useEffect(() => {
    // What is typed on is no step of its own to go back to.
    if (settled !== value) setFilters({ q: settled }, { replace: value !== "" && settled !== "" });
  }, [settled]);
  useEffect(() => {
    if (value !== settled) setText(value);
  }, [value]);
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={placeholder}
      maxLength={128}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
}
