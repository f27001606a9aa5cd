// Putting posts into a collection by hand, or keeping them out, from wherever posts are shown.

import { signal } from "@preact/signals-core";

import type { Option } from "./picker.tsx";

export interface Marking {
  /** Of the posts. */
  ids: readonly string[];
  /** What the dialog calls them. */
  name: string;
  /** The collection that is chosen at first. */
  collection?: Option;
}

/** The posts that the dialog is open for. */
export const marking = signal<Marking | null>(null);
/** Whether the key may change collections. */
export const mayMark = signal(false);
/** Grows with each change of marks: what shows collections loads again. */
export const markChanges = signal(0);

export function MarkButton({
  id,
  caption,
  collection,
}: {
  id: string;
  caption: string | null;
  collection?: Option;
}) {
  if (!mayMark.value) return null;
  const name = caption || "Post without a caption";
  return (
    <button
      type="button"
      class="plain small"
      title={collection ? "Include or exclude" : "Add to a collection"}
      aria-label={`${collection ? "Include or exclude" : "Add to a collection"}: ${name}`}
      onClick={() => (marking.value = { ids: [id], name, ...(collection ? { collection } : {}) })}
    >
      {collection ? "⋯" : "+"}
    </button>
  );
}
