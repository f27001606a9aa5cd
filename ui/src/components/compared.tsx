// Records side by side, above the table from which they were chosen. Few people compare: the code is loaded when they do.

import type { ComponentType } from "preact";

import { useResource } from "../api/resource.ts";
import { type ComparedKind, comparedIds, MAX_COMPARED, setCompared } from "../state/compared.ts";
import { view } from "../state/view.ts";
import { ProblemNotice } from "./parts.tsx";

export interface ComparisonProps {
  kind: ComparedKind;
  ids: readonly string[];
  /** Names by id, of the records that the page lists, once it does. */
  names: ReadonlyMap<string, string> | undefined;
}

interface Props extends Omit<ComparisonProps, "ids"> {
  code: () => Promise<{ default: ComponentType<ComparisonProps> }>;
}

/** Of a chart with its figures, in pixels. */
const HEIGHT = 440;

export function Compared({ code, ...props }: Props) {
  const ids = comparedIds(view.value, props.kind);
  const isOn = ids.length > 0;
  const loaded = useResource(isOn ? code : null, [isOn]);
  if (!isOn) return null;
  const Comparison = loaded.data?.default;
  if (Comparison) return <Comparison ids={ids} {...props} />;
  return (
    <section class="card" aria-busy={loaded.status === "loading"} aria-label="Comparison">
      <ProblemNotice of={loaded} />
      <div class="skeleton" style={{ height: `${HEIGHT}px` }} />
    </section>
  );
}

/** Compares chosen rows of a table. */
export function CompareButton({ kind, ids }: Pick<ComparisonProps, "kind" | "ids">) {
  const canCompare = ids.length > 1 && ids.length <= MAX_COMPARED;
  return (
    <button
      type="button"
      disabled={!canCompare}
      title={canCompare ? "Side by side" : `Choose two to ${MAX_COMPARED} to compare them`}
      onClick={() => setCompared(kind, ids)}
    >
      Compare
    </button>
  );
}
