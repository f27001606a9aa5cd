// The order of a table: a ranking by a metric, or its list by a field.

import type { Metric } from "../state/metrics.ts";
import type { View } from "../state/view.ts";

export type Order<M extends Metric, Field extends string> = { text: string } & (
  | { metric: M; field?: undefined; direction: "asc" | "desc" }
  | { metric?: undefined; field: Field; direction: "asc" | "desc" }
);

/** The order that a text names as in the address, for example `-views` or `username`. */
function parseOrder<M extends Metric, Field extends string>(
  text: string,
  metrics: readonly M[],
  fields: readonly Field[],
): Order<M, Field> | null {
  const name = text.replace("-", "");
  const [metric, field] = [metrics.find((metric) => metric === name), fields.find((field) => field === name)];
  const direction = text.startsWith("-") ? "desc" : "asc";
  if (metric) return { text, metric, direction };
  return field ? { text, field, direction } : null;
}

export function rankedBy<M extends Metric>(metric: M): Order<M, never> {
  return { text: `-${metric}`, metric, direction: "desc" };
}

/** The smallest first, as losses are. */
export function rankingDirection({ direction }: { direction: "asc" | "desc" }): { order_direction?: "asc" } {
  return direction === "asc" ? { order_direction: direction } : {};
}

/** The order that the address chooses, otherwise the table's own. */
export function orderOf<M extends Metric, Field extends string>(
  { sort }: View,
  metrics: readonly M[],
  fields: readonly Field[],
  own: Order<M, Field>,
): Order<M, Field> {
  return parseOrder(sort, metrics, fields) ?? own;
}
