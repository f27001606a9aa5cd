// The records that a page compares. Their ids are in the address.

import { setFilters, type View, view } from "./view.ts";

export const MAX_COMPARED = 5;

/** Names of the filters. */
export type ComparedKind = "creators" | "accounts" | "posts";

export function comparedIds({ filters }: View, kind: ComparedKind): string[] {
  return (filters.get(kind) ?? "").split(",").filter(Boolean).slice(0, MAX_COMPARED);
}

export function setCompared(kind: ComparedKind, ids: readonly string[]): void {
  setFilters({ [kind]: ids.join(",") });
}

export function toggleCompared(kind: ComparedKind, id: string): void {
  const ids = comparedIds(view.value, kind);
  setCompared(kind, ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id]);
}
